/* Marks on the timeline: processes that began and versions that appeared while it was watched. */
import type { Labels } from './api';
import { time } from './format';
import type { Mark } from './plot';
import type { Window } from './state';

const MOST = 12; // marks; those closer than this part of the range become one
const NEAR = 1 / 60;
const NAMED = 3; // versions in the text of one mark
const WHAT: Record<string, string> = { 'service.version': 'New version', 'container.image.tag': 'New image' };
const BUILD_ID = 'process.executable.build_id.'; // .gnu, .go

interface Start {
  at: number;
  what: string; // empty: a process
  value: string;
}

/** A build is new where another of the same executable was there before: a service may run many. */
function buildsOf(labels: Labels): Start[] {
  const all = labels.labels.filter((l) => l.key.startsWith(BUILD_ID)).flatMap((l) => l.values);
  const oldest = new Map<string | undefined, number>();
  for (const v of all) oldest.set(v.build_of, Math.min(v.first, oldest.get(v.build_of) ?? Infinity));
  return all
    .filter((v) => v.first > oldest.get(v.build_of)!)
    .map((v) => ({ at: v.first, what: 'New build', value: v.value.slice(0, 8) + (v.build_of ? ` of ${v.build_of}` : '') }));
}

/** What was there in the first intervals has not begun within them. */
function startsOf(labels: Labels, w: Window, interval: number): Start[] {
  return labels.labels
    .filter((l) => l.key === 'process.pid' || (WHAT[l.key] && l.values.length > 1))
    .flatMap((l) => l.values.map((v) => ({ at: v.first, what: WHAT[l.key] ?? '', value: v.value })))
    .concat(buildsOf(labels))
    .filter((s) => s.at > w.from + 2 * interval)
    .sort((a, b) => a.at - b.at);
}

function textOf(starts: Start[], utc: boolean): string {
  const builds = [...new Set(starts.filter((s) => s.what).map((s) => `${s.what} ${s.value}`))];
  const more = builds.length > NAMED ? [`${builds.length - NAMED} more`] : [];
  const pids = starts.filter((s) => !s.what);
  const began = pids.length > 1 ? [`${pids.length} processes started`] : pids.map((s) => `Process ${s.value} started`);
  return `${[...builds.slice(0, NAMED), ...more, ...began].join(', ')} (${time(starts[0]!.at, utc)})`;
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
  const weight = (g: Start[]) => Number(g.some((s) => s.what));
  return groups.sort((a, b) => weight(b) - weight(a) || b[0]!.at - a[0]!.at).slice(0, MOST)
    .map((g) => ({ at: g[0]!.at, kind: weight(g) ? 'build' : 'start', text: textOf(g, utc), open: () => undefined }));
}
