/* Paints the visible part of a profile. What is thinner than a pixel is skipped with its subtree. */
import { palette, tone, TONES } from '../compare';
import type { Profile } from './layout';
import { originColours } from './origin';

export const ROW = 19;
export const FONT = '11.5px ui-monospace, "SF Mono", "Cascadia Mono", "DejaVu Sans Mono", Menlo, monospace';

export interface Theme {
  dark: boolean;
  blind: boolean;
  bg: string;
  fg: string;
  faint: string; // bars the search did not find
  faintText: string;
  dust: string; // nodes thinner than a pixel
  hit: string;
}

export interface Frame {
  profile: Profile;
  colours: string[]; // by name, or the tones of a comparison
  theme: Theme;
  zoom: number;
  hit: Uint8Array | null;
  up: boolean; // callers grow upwards
  width: number;
  height: number;
  top: number; // scrolled away
  letter: number; // width of one letter
}

export const coloursOf = (p: Profile, theme: Theme): string[] =>
  p.diff ? palette(theme.dark, theme.blind) : originColours(p, theme);

export function colourOf(f: Pick<Frame, 'profile' | 'colours'>, i: number): string {
  const p = f.profile;
  if (!p.diff) return f.colours[p.name[i]!]!;
  const [a, b] = p.norm ? [p.total[0]!, p.beforeTotal[0]!] : [1, 1];
  return f.colours[TONES + Math.round(tone(p.beforeTotal[i]!, p.total[i]!, b, a) * TONES)]!;
}

/** Top of a row in the scrolled content. Callers stand on the bottom edge, also when they are few. */
export function rowAt(f: Frame, depth: number): number {
  if (!f.up) return depth * ROW;
  return Math.max(f.profile.levels * ROW, f.height) - (depth + 1) * ROW;
}

export const rowTop = (f: Frame, depth: number) => rowAt(f, depth) - f.top;

export function depthAt(f: Frame, y: number): number {
  if (!f.up) return Math.floor((y + f.top) / ROW);
  return Math.ceil((Math.max(f.profile.levels * ROW, f.height) - y - f.top) / ROW) - 1;
}

function bar(c: CanvasRenderingContext2D, f: Frame, i: number, x: number, w: number): void {
  const p = f.profile;
  const y = rowTop(f, p.depth[i]!);
  if (y <= -ROW || y >= f.height) return;
  const name = p.name[i]!;
  const missed = f.hit !== null && !f.hit[name];
  c.fillStyle = missed ? f.theme.faint : colourOf(f, i);
  const left = Math.max(0, x);
  const width = Math.min(x + w, f.width) - left;
  c.fillRect(left, y, Math.max(width - (w > 2 ? 1 : 0), 0.5), ROW - 1);
  if (f.hit?.[name] && w > 3) {
    c.fillStyle = f.theme.hit;
    c.fillRect(left, y + ROW - 3, Math.max(width - 1, 1), 2);
  }
  const room = Math.floor((width - 9) / f.letter);
  if (room < 2) return;
  let s = p.short[name]!;
  if (s.length > room) s = s.slice(0, room - 1) + '…';
  c.fillStyle = missed ? f.theme.faintText : f.theme.fg;
  c.fillText(s, left + 4, y + ROW / 2);
}

/** Returns the number of bars painted. */
export function draw(c: CanvasRenderingContext2D, f: Frame): number {
  const { profile: p, zoom: z, width, height } = f;
  c.fillStyle = f.theme.bg;
  c.fillRect(0, 0, width, height);
  c.font = FONT;
  c.textBaseline = 'middle';
  c.globalAlpha = 0.55;
  for (let q = p.parent[z]!; q >= 0; q = p.parent[q]!) bar(c, f, q, 0, width);
  c.globalAlpha = 1;

  const k = width / (p.w[z]! || 1);
  const x0 = p.x[z]!;
  const deepest = f.up ? p.levels : Math.ceil((f.top + height) / ROW);
  const dust = new Float64Array(p.levels).fill(-1);
  let painted = 0;
  for (let i = z, e = p.end[z]!; i < e; ) {
    const d = p.depth[i]!;
    const x = (p.x[i]! - x0) * k;
    const w = p.w[i]! * k;
    if (d > deepest) {
      i = p.end[i]!;
    } else if (w < 0.7) {
      const y = rowTop(f, d);
      if (x - dust[d]! >= 1 && y > -ROW && y < height) {
        dust[d] = x;
        c.fillStyle = f.hit?.[p.name[i]!] ? f.theme.hit : f.theme.dust;
        c.fillRect(x, y, 1, ROW - 1);
      }
      i = p.end[i]!;
    } else {
      bar(c, f, i, x, w);
      painted++;
      i++;
    }
  }
  return painted;
}
