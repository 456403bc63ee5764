/* The machine on top of the overview: CPU by service, memory, and sonde itself in one line. */
import { useMemo, useRef, useState } from 'preact/hooks';
import { time, value } from '../format';
import { Plot, type Curve } from '../plot';
import type { Points } from '../series';
import { go, serviceLink, START, windowText, type State, type Window } from '../state';
import type { View } from './model';
import { bandsOf, stacked, topOf, type Band } from './stack';
import { lately, type Row } from './rows';
import { NARROW } from './table';

const heights = () => (NARROW.matches ? { cpu: 150, memory: 90 } : { cpu: 196, memory: 196 });
const CPU = 'cpu:cpu:nanoseconds';
const cores = (v: number | null | undefined) => value(v == null ? v : v * 1e9, 'cores');

/** At the cursor; without one as the table has it. */
const read = (points: Points, at: number | null) => (at == null ? lately(points) : points[at] ?? null);

export interface MachineProps {
  view: View;
  rows: Row[];
  state: State;
  utc: boolean;
  dark: boolean;
  /** Shows a group of the table. */
  onGroup(key: string): void;
}

interface PlotFrame {
  from: number;
  to: number;
  step_ms: number;
  utc: boolean;
  dark: boolean;
}

/* A drag zooms in; a double click goes back to the last hour. */
const CHOSEN = {
  sel: null, base: null, marks: [],
  onSelect: (w: Window) => go({ range: windowText(w) }),
  onReset: () => go({ range: START.range }),
};

export function Machine({ view, rows, state, utc, dark, onGroup }: MachineProps) {
  const slots = useRef(new Map<string, number>());
  const bands = useMemo(() => bandsOf(view, rows, slots.current), [view, rows]);
  const [at, setAt] = useState<number | null>(null);
  const frame = { from: view.from, to: view.to, step_ms: view.step_ms, utc, dark };
  const when = at == null ? '' : time(view.from + (at + 0.5) * view.step_ms, utc);
  return (
    <section class="machine" aria-label="Machine">
      <Cpu {...{ view, bands, state, at, setAt, when, frame, onGroup }} />
      {view.memory.some((v) => v != null) && <Memory {...{ view, at, setAt, when, frame }} />}
    </section>
  );
}

interface PartProps {
  view: View;
  at: number | null;
  setAt(i: number | null): void;
  when: string;
  frame: PlotFrame;
}

function Cpu({ view, bands, state, at, setAt, when, frame, onGroup }: PartProps & { bands: Band[]; state: State; onGroup(key: string): void }) {
  const [over, setOver] = useState('');
  const sums = useMemo(() => stacked(bands), [bands]);
  // At least what was sampled: the machine's own figure begins later, and without it nothing is known of idle time.
  const busy = useMemo(() => view.cpu.map((v, i) => {
    const sampled = sums[sums.length - 1]?.[i] ?? null;
    return v == null || sampled == null ? v ?? sampled : Math.max(v, sampled);
  }), [view, sums]);
  const measured = lately(view.cpu) != null;
  // Painted from the largest sum to the smallest, each over the one before.
  const curves = useMemo(
    (): Curve[] => bands.map((b, i) => ({ name: b.key, points: sums[i]!, colour: b.colour, fill: true, solid: true })).reverse(),
    [bands, sums],
  );
  const bandAt = (i: number, y: number) => bands[sums.findIndex((s) => s[i] != null && y <= s[i]!)];
  const point = (i: number, y: number, clicked: boolean) => {
    const b = bandAt(i, y);
    setOver(b?.key ?? 'idle');
    if (!clicked || !b?.row) return;
    if (b.row.line) location.hash = serviceLink(b.row.line.service, state.range, CPU);
    else onGroup(b.row.key);
  };
  const top = topOf(busy, view.cpus);
  const height = heights().cpu;
  return (
    <figure class="mcpu" onPointerLeave={() => setOver('')} aria-label={`CPU: ${cores(lately(busy))} of ${view.cpus} ${measured ? 'busy' : 'sampled'}`}>
      <figcaption><h2>CPU</h2> <b>{cores(read(busy, at)).replace(/\u2009cores?$/, '')}</b> of {view.cpus} {view.cpus === 1 ? 'core' : 'cores'} {measured ? 'busy' : 'sampled'} <span class="dim when">{when}</span></figcaption>
      <div class="mplot" style={{ minHeight: `${height}px` }}>
        <Plot {...CHOSEN} {...frame} curves={curves} unit="count" height={height} slim top={top} onCursor={setAt} onPoint={point} />
      </div>
      <Legend {...{ bands, state, over, onGroup, at }} idle={measured ? read(idleOf(busy, view.cpus), at) : null} />
    </figure>
  );
}

const idleOf = (busy: Points, cpus: number): Points => busy.map((v) => (v == null ? null : Math.max(0, cpus - v)));

interface LegendProps {
  bands: Band[];
  state: State;
  over: string;
  idle: number | null;
  at: number | null;
  onGroup(key: string): void;
}

/** The same links as the bands, for those without a mouse; the largest on top, as in the picture. */
function Legend({ bands, state, over, idle, at, onGroup }: LegendProps) {
  const named = (b: Band) =>
    b.row?.line ? <a href={serviceLink(b.row.line.service, state.range, CPU)} title={b.name}><span class="sr">CPU of </span>{b.name}</a>
      : b.row ? <button type="button" class="link" title={b.name} onClick={() => onGroup(b.row!.key)}>{b.name}</button>
        : <span class="dim" title={b.key === 'lost' ? 'Busy by /proc/stat, but in no sample: interrupts, steal time, lost samples' : 'All smaller services and programs'}>{b.name}</span>;
  return (
    <ul class="mlegend">
      {idle != null && <li class={over === 'idle' ? 'on' : ''}><i class="idle" /><span class="dim">idle</span><span class="num dim">{cores(idle)}</span></li>}
      {bands.slice().reverse().map((b) => (
        <li key={b.key} class={over === b.key ? 'on' : ''}>
          <i style={{ background: `var(${b.colour})` }} />{named(b)}<span class="num">{cores(at == null ? b.row?.cpuNow ?? lately(b.points) : b.points[at])}</span>
        </li>
      ))}
    </ul>
  );
}

function Memory({ view, at, setAt, when, frame }: PartProps) {
  const height = heights().memory;
  const curves = useMemo((): Curve[] => [{ name: 'used', points: view.memory, colour: '--accent', fill: true }], [view]);
  return (
    <figure class="mmemory" aria-label={`Memory: ${value(lately(view.memory), 'bytes')} of ${value(view.memory_bytes, 'bytes')} used`}>
      <figcaption><h2>Memory</h2> <b>{value(read(view.memory, at), 'bytes')}</b> of {value(view.memory_bytes, 'bytes')} used <span class="dim when">{when}</span></figcaption>
      <div class="mplot" style={{ minHeight: `${height}px` }}>
        <Plot {...CHOSEN} {...frame} curves={curves} unit="bytes" height={height} slim top={view.memory_bytes} onCursor={setAt} />
      </div>
    </figure>
  );
}
