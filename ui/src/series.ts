/* Points over time: gaps, rates, and where a curve ends. */
import type { Window } from './state';

export type Points = (number | null)[];

/** The usual number of steps between two points: some types are collected less often. */
export function spacing(points: Points): number {
  const gaps: number[] = [];
  let before = -1;
  points.forEach((v, i) => {
    if (v == null) return;
    if (before >= 0) gaps.push(i - before);
    before = i;
  });
  gaps.sort((a, b) => a - b);
  return gaps[(gaps.length - 1) >> 1] ?? 1;
}

/** A snapshot holds until the next one is due; a longer silence is a gap. */
export function held(points: Points): Points {
  const every = spacing(points);
  if (every < 2) return points;
  const out = points.slice();
  let before = -1;
  points.forEach((v, i) => {
    if (v == null) return;
    if (before >= 0 && i - before <= every + 1) out.fill(points[before]!, before, i);
    before = i;
  });
  return out.fill(points[before]!, before, before + every);
}

/** The drawn points: rates of a delta type, values of a snapshot. What was not collected is a gap. */
export function curve(mode: 'delta' | 'snapshot', points: Points, step_ms: number): Points {
  if (mode === 'snapshot') return held(points);
  return points.map((v) => (v == null ? null : v / (step_ms / 1000)));
}

/** Windows of the steps whose samples came late and are spread evenly. */
export function stretches(s: { from: number; step_ms: number; spread: number[] }): Window[] {
  const out: Window[] = [];
  for (const i of s.spread) {
    const from = s.from + i * s.step_ms;
    const last = out[out.length - 1];
    if (last && last.to === from) last.to += s.step_ms;
    else out.push({ from, to: from + s.step_ms });
  }
  return out;
}

/* Of a busy week there may be hundreds: the plot has them all. */
const LISTED = 5;

export function listed(windows: Window[], text: (w: Window) => string): string {
  const rest = windows.length - LISTED;
  const shown = windows.slice(0, LISTED).map(text).join(', ');
  return rest > 0 ? `${shown} and ${rest} more` : shown;
}

/* With this many points missing at the end, the process is gone. */
const GONE = 3;

export function ended(points: Points): boolean {
  const silent = GONE * spacing(points);
  return points.length > silent && points.slice(-silent).every((v) => v == null);
}

/** Complete steps of the last tenth: few samples fall into a single one. */
export function latest(points: Points, rate: boolean): number | undefined {
  const known = points.filter((v): v is number => v != null);
  if (!rate) return known[known.length - 1];
  const whole = known.length > 2 ? known.slice(0, -1) : known;
  const some = whole.slice(-Math.max(5, Math.ceil(points.length / 10)));
  return some.length ? some.reduce((s, v) => s + v, 0) / some.length : undefined;
}
