/* Marks on the timeline: processes that began and versions that appeared while it was watched. */
import type { Labels } from './api';
import { time } from './format';
import type { Mark } from './plot';
import type { Window } from './state';

const MOST = 12; // marks; those closer than this part of the range become one
const NEAR = 1 / 60;
const WHAT: Record<string, string> = { 'service.version': 'New version', 'process.executable.build_id': 'New build', 'container.image.tag': 'New image' };

interface Start {
  at: number;
  key: string;
  value: string;
}

/** What was there in the first intervals has not begun within them. */
function startsOf(labels: Labels, w: Window, interval: number): Start[] {
  return labels.labels
    .filter((l) => l.key === 'process.pid' || (WHAT[l.key] && l.values.length > 1))
    .flatMap((l) => l.values.filter((v) => v.first > w.from + 2 * interval).map((v) => ({ at: v.first, key: l.key, value: v.value })))
    .sort((a, b) => a.at - b.at);
}

function textOf(starts: Start[], utc: boolean): string {
  const builds = starts.filter((s) => WHAT[s.key]).map((s) => `${WHAT[s.key]} ${s.value}`);
  const pids = starts.filter((s) => !WHAT[s.key]);
  const began = pids.length > 1 ? [`${pids.length} processes started`] : pids.map((s) => `Process ${s.value} started`);
  return `${[...new Set(builds), ...began].join(', ')} (${time(starts[0]!.at, utc)})`;
}

export function startMarks(labels: Labels | null, w: Window, interval: number, utc: boolean): Mark[] {
  if (!labels) return [];
  const groups: Start[][] = [];
  for (const s of startsOf(labels, w, interval)) {
    const last = groups[groups.length - 1];
    if (last && s.at - last[0]!.at < (w.to - w.from) * NEAR) last.push(s);
    else groups.push([s]);
  }
  // New versions matter more than restarts, and recent ones more than old ones.
  const weight = (g: Start[]) => Number(g.some((s) => WHAT[s.key]));
  return groups.sort((a, b) => weight(b) - weight(a) || b[0]!.at - a[0]!.at).slice(0, MOST)
    .map((g) => ({ at: g[0]!.at, kind: weight(g) ? 'build' : 'start', text: textOf(g, utc), open: () => undefined }));
}
