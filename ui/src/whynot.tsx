/*
 * Types that a service could have and has not: why, and what turns them on. All of it is what the
 * server says about the service's processes (/api/targets) and the machine (/api/health).
 */
import type { Feature, Reader, Target } from './api';
import { Empty } from './parts';
import { go } from './state';
import { familyOf, firstOf, typeText } from './types';

export interface WhyNot {
  type: string; // the first of its family
  state: 'off' | 'empty'; // empty: it is collected, and there was nothing
  reason: string;
  remedy: string;
}

/* These say that the type has nothing to do with the process, or that nobody knows yet. */
const ELSEWHERE = ['not_go', 'not_java', 'kernel_thread', 'gone', 'pending'];

/* What works for the machine as a whole or not at all. */
const FAMILY: Record<string, string> = { cpu: 'cpu', 'off-cpu': 'offcpu' };

/** The reason that most processes have. */
function commonest(readers: Reader[]): Reader {
  const same = (a: Reader) => readers.filter((b) => b.cause === a.cause && b.reason === a.reason).length;
  return readers.reduce((best, r) => (same(r) > same(best) ? r : best));
}

function ofReaders(readers: Reader[]): Omit<WhyNot, 'type'> | null {
  const on = readers.find((r) => r.available);
  if (on) return { state: 'empty', reason: on.trouble ?? 'On, and nothing was recorded in this range.', remedy: '' };
  const may = readers.filter((r) => !ELSEWHERE.includes(r.cause ?? ''));
  if (!may.length) return null;
  const { reason, remedy } = commonest(may);
  return { state: 'off', reason: reason ?? '', remedy: remedy ?? '' };
}

export function whyNot(stored: { type: string }[], targets: Target[], features: Feature[] | null): WhyNot[] {
  const has = (family: string) => stored.some((t) => familyOf(t.type) === family);
  const found = new Map<string, WhyNot>();
  const add = (family: string, why: Omit<WhyNot, 'type'> | null) => {
    const type = firstOf(family);
    if (why && type && !has(family)) found.set(family, { type, ...why });
  };
  const readers = targets.flatMap((t) => t.readers);
  for (const family of new Set(readers.map((r) => r.family))) add(family, ofReaders(readers.filter((r) => r.family === family)));
  // A process that is gone needs no advice.
  for (const f of targets.length ? features ?? [] : [])
    if (FAMILY[f.feature] && f.state === 'off') add(FAMILY[f.feature]!, { state: 'off', reason: f.reason ?? '', remedy: f.remedy ?? '' });
  return [...found.values()];
}

export function WhyNotCards({ all, current }: { all: WhyNot[]; current: string }) {
  if (!all.length) return null;
  return (
    <div class="typegroup off" role="group" aria-label="Not collected">
      {all.map((w) => (
        <button type="button" class="type none" aria-pressed={w.type === current} title={[w.reason, w.remedy].filter(Boolean).join('\n')}
          onClick={() => go({ type: w.type, zoom: '' })}>
          <span class="typename">{typeText(w.type).title}</span>
          <span class="typevalue">{w.state === 'off' ? 'off' : 'none'}</span>
          <span class="typenone">{w.reason}</span>
        </button>
      ))}
    </div>
  );
}

export function WhyNotPage({ why }: { why: WhyNot }) {
  const { title, help } = typeText(why.type);
  return (
    <Empty title={`${title}: ${why.state === 'off' ? 'not collected' : 'no data in this range'}`}>
      <p>{help}</p>
      <p>Why not: {why.reason}</p>
      {why.remedy && <><p>To turn it on:</p><pre class="mono remedy">{why.remedy}</pre></>}
    </Empty>
  );
}
