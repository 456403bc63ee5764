/* Comparing a value in two windows: change, share of the total change, colour. */
import type { Profile, Row } from './flame/layout';

export interface Change {
  before: number;
  after: number;
  change: number;
}

/** Normalised values are shares of their window, in percent. */
export function change(p: Profile, before: number, after: number): Change {
  const a = p.norm ? (100 * after) / (p.total[0] || 1) : after;
  const b = p.norm ? (100 * before) / (p.beforeTotal[0] || 1) : before;
  return { before: b, after: a, change: a - b };
}

export function rowChange(p: Profile, r: Row, by: 'self' | 'total'): Change {
  return by === 'self' ? change(p, r.beforeSelf, r.self) : change(p, r.beforeTotal, r.total);
}

/**
 * The base of change shares: the change of the whole. If gains and losses cancel out (always the
 * case for normalised values), half of all movement, to keep shares meaningful.
 */
export function wholeChange(p: Profile, rows: Row[]): number {
  const net = p.norm ? 0 : p.total[0]! - p.beforeTotal[0]!;
  let moved = 0;
  for (const r of rows) moved += Math.abs(rowChange(p, r, 'self').change);
  return Math.abs(net) > moved * 0.1 ? Math.abs(net) : moved / 2;
}

/** -1 (gone) .. 1 (new), steep around zero: 10% more must be visible. */
export function tone(before: number, after: number, totalBefore: number, totalAfter: number): number {
  const b = before / (totalBefore || 1);
  const a = after / (totalAfter || 1);
  if (!a && !b) return 0;
  const d = (a - b) / (a + b);
  return Math.sign(d) * (1 - Math.exp(-3.5 * Math.abs(d)));
}

export const TONES = 12;

/** Colours for -TONES..TONES: better, unchanged, worse. */
export function palette(dark: boolean, blind: boolean): string[] {
  const [worse, better] = blind ? [32, 212] : [4, 142];
  const out: string[] = [];
  for (let i = -TONES; i <= TONES; i++) {
    const k = Math.abs(i) / TONES;
    const hue = i > 0 ? worse : better;
    const sat = Math.round(k * (dark ? 58 : 72));
    const light = dark ? Math.round(27 + k * 13) : Math.round(90 - k * 24);
    out.push(`hsl(${hue} ${sat}% ${light}%)`);
  }
  return out;
}
