/* Nothing to show yet: what goes on, and when to expect what. */
import { useEffect, useState } from 'preact/hooks';
import type { Feature, Health } from '../api';
import { span } from '../format';
import { Empty } from '../parts';
import { go } from '../state';

interface Step {
  title: string;
  done: boolean;
  when: string;
}

const off = (features: Feature[] | null, name: Feature['feature']) => features?.find((f) => f.feature === name && f.state === 'off');

/** In the order in which they come in; `age` is how long the server has been running. */
export function stepsOf(h: Health, age: number): Step[] {
  const due = (at: number) => (at > age ? `in ${span(Math.max(1000, at - age))}` : 'any moment');
  const cpu = off(h.features, 'cpu');
  const go_ = off(h.features, 'go');
  const why = (f: Feature) => `${f.reason ?? 'off'}${f.remedy ? `; ${f.remedy}` : ''}`;
  return [
    { title: 'Processes', done: h.targets > 0, when: h.targets > 0 ? `${h.targets} found` : 'being looked for' },
    { title: 'CPU of every process', done: h.cpu_samples > 0, when: cpu ? why(cpu) : h.cpu_samples > 0 ? 'being sampled' : `after one interval of ${span(h.interval_ms)}: ${due(h.interval_ms)}` },
    { title: 'Go heaps and goroutines', done: h.profiled > 0, when: go_ ? why(go_) : h.profiled > 0 ? `of ${h.profiled} processes` : `the second collection has the first difference: ${due(2 * h.interval_ms)}` },
    { title: 'Curves', done: false, when: 'a point each minute; a change is marked once there is a history to compare with, after about a quarter of an hour' },
  ];
}

function useSeconds(): number {
  const [now, set] = useState(0);
  useEffect(() => {
    const begin = performance.now();
    const timer = setInterval(() => set(performance.now() - begin), 1000);
    return () => clearInterval(timer);
  }, []);
  return now;
}

export function NothingYet({ health, range }: { health: Health | null; range: string }) {
  const waited = useSeconds();
  if (!health) return null;
  const age = health.uptime_ms + waited;
  // What is older than this has been stored, and lies elsewhere.
  const elsewhere = health.store.oldest != null && age > 4 * health.interval_ms + 60e3;
  if (elsewhere)
    return (
      <Empty title="No data in this range">
        <p>The oldest data was stored {span(Math.max(0, health.now - health.store.oldest!))} ago.</p>
        {range !== '24h' && <button type="button" onClick={() => go({ range: '24h' })}>Show the last 24 h</button>}
      </Empty>
    );
  return (
    <Empty title="Nothing collected yet">
      <p>sonde started {span(age)} ago. Nothing needs to be configured or restarted; this page updates by itself.</p>
      <ol class="steps">
        {stepsOf(health, age).map((s) => (
          <li class={s.done ? 'done' : ''}>
            <span class="tick" aria-hidden="true">{s.done ? '✓' : '○'}</span>
            <b>{s.title}</b> <span class="sr">{s.done ? 'done: ' : 'to come: '}</span><span class="dim">{s.when}</span>
          </li>
        ))}
      </ol>
      <p>Processes of other users need root: <code>sudo sonde run</code>.</p>
    </Empty>
  );
}
