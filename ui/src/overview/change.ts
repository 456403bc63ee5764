/*
 * Whether a curve does something that it usually does not: its last part against its own history.
 * Medians, so that one spike is no change; nothing is said when the history is short.
 */
import type { Points } from '../series';

export interface Change {
  before: number; // the median of its history
  now: number; // the median of its last part
  since: number; // index of the step in which it began
}

/* History that is needed, in steps. */
const HISTORY = 10;
/* How far from the median, in standard deviations (of which the MAD is an estimate), and relative to it. */
const DEVIATIONS = 5;
const RELATIVE = 0.25;
/* Steps of its history that may have been as far away: more, and it is what the row does now and then. */
const SELDOM = 0.05;

function median(values: number[]): number {
  const sorted = values.slice().sort((a, b) => a - b);
  const mid = sorted.length >> 1;
  return sorted.length % 2 ? sorted[mid]! : (sorted[mid - 1]! + sorted[mid]!) / 2;
}

/** `least`: the smallest change worth mentioning, whatever the row usually does. */
export function changeOf(points: Points, least: number): Change | null {
  const known = points.flatMap((v, i) => (v == null ? [] : [{ v, i }]));
  const recent = Math.max(3, Math.ceil(points.length / 10));
  if (known.length < HISTORY + recent) return null;
  const values = known.map((k) => k.v);
  const now = median(values.slice(-recent));
  const half = (now + median(values.slice(0, -recent))) / 2;
  const beyond = (v: number) => (now > half ? v > half : v < half);
  // The change may be older than the last part: what leads up to it is not history.
  let start = known.length - recent;
  while (start > 0 && beyond(values[start - 1]!)) start--;
  while (start < known.length && !beyond(values[start]!)) start++;
  const history = values.slice(0, Math.min(start, known.length - recent));
  if (history.length < HISTORY) return null;
  const before = median(history);
  const deviation = 1.4826 * median(history.map((v) => Math.abs(v - before)));
  if (Math.abs(now - before) < Math.max(least, DEVIATIONS * deviation, RELATIVE * before)) return null;
  if (history.filter(beyond).length > SELDOM * history.length) return null;
  return { before, now, since: known[Math.min(start, known.length - 1)]!.i };
}
