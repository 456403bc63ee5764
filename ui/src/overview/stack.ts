/* The machine's CPU, divided up: the largest rows, the rest, what no sample accounts for, and idle time. */
import type { Points } from '../series';
import type { View } from './model';
import { added, collectedIn, type Row } from './rows';

export interface Band {
  key: string;
  name: string;
  colour: string; // a variable of the theme
  points: Points; // cores
  row: Row | null; // what it leads to
}

const LARGEST = 8;
/* Less than this share of the busy time is noise of the sampling. */
const NOTABLE = 0.05;

/**
 * A row keeps its colour, and its place in the stack, while it is among the largest: `slots` remembers.
 */
function assign(rows: Row[], slots: Map<string, number>): Row[] {
  const large = rows.filter((r) => r.mean > 0).sort((a, b) => b.mean - a.mean).slice(0, LARGEST);
  const keys = new Set(large.map((r) => r.key));
  for (const key of [...slots.keys()]) if (!keys.has(key)) slots.delete(key);
  for (const r of large) {
    if (slots.has(r.key)) continue;
    const taken = new Set(slots.values());
    slots.set(r.key, Array.from({ length: LARGEST }, (_, i) => i).find((i) => !taken.has(i))!);
  }
  return large.sort((a, b) => slots.get(a.key)! - slots.get(b.key)!);
}

/** From the bottom of the stack to its top. */
export function bandsOf(v: View, rows: Row[], slots: Map<string, number>): Band[] {
  const large = assign(rows, slots);
  const collected = collectedIn(v);
  const all = added(v.lines, collected);
  const top = added(large, collected);
  const bands: Band[] = large.map((row) => ({
    key: row.key, name: row.name, colour: `--band-${slots.get(row.key)! + 1}`, points: added([row], collected), row,
  }));
  const minus = (a: Points, b: Points) => a.map((x, i) => (x == null || b[i] == null ? null : Math.max(0, x - b[i]!)));
  const total = (p: Points) => p.reduce<number>((s, x) => s + (x ?? 0), 0);
  const rest = minus(all, top);
  if (total(rest) > 0) bands.push({ key: 'rest', name: `${rows.length - large.length} more`, colour: '--band-rest', points: rest, row: null });
  const lost = minus(v.cpu, all);
  if (total(lost) > NOTABLE * total(v.cpu)) bands.push({ key: 'lost', name: 'not sampled', colour: '--band-lost', points: lost, row: null });
  return bands;
}

/** Sums of the bands up to each, in the order of the bands. */
export function stacked(bands: Band[]): Points[] {
  let below: Points = [];
  return bands.map((b) => (below = b.points.map((v, i) => (v == null ? null : v + (below[i] ?? 0)))));
}

/** The top of the scale: all cores, unless most of the picture would be idle. */
export function topOf(busy: Points, cpus: number): number {
  const peak = busy.reduce<number>((m, v) => Math.max(m, v ?? 0), 0);
  return peak >= 0.3 * cpus ? Math.max(peak, cpus) : Math.max(1.5 * peak, Math.min(cpus, 0.1));
}
