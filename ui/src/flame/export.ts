/*
 * The flame graph as a file, as it is shown: zoom, marks of the search or legend, colours of a
 * comparison; with a caption and a legend, for it leaves the page. SVG has the full names as titles.
 */
import { TONES } from '../compare';
import { percent } from '../format';
import { colourOf, coloursOf, draw, FONT, ROW, type Theme } from './draw';
import type { Profile } from './layout';
import { KINDS, legendOf } from './origin';

export interface Picture {
  profile: Profile;
  zoom: number;
  hit: Uint8Array | null;
  theme: Theme;
  title: string; // "checkout · CPU"
  caption: string; // the window, the value
}

const WIDTH = 1200;
const PAD = 12;
const LINE = 20;
const LETTER = 7;
const MAX_HEIGHT = 8000; // canvases have limits
const SANS = 'system-ui, -apple-system, "Segoe UI", sans-serif';

interface Entry {
  colour: string;
  text: string;
}

function entriesOf({ profile: p, theme }: Picture): Entry[] {
  if (p.diff) {
    const tones = coloursOf(p, theme);
    return [{ colour: tones[0]!, text: 'less' }, { colour: tones[TONES]!, text: 'unchanged' }, { colour: tones[2 * TONES]!, text: 'more' }];
  }
  return legendOf(p, theme.dark).flatMap((k) =>
    k.modules.map((m) => ({ colour: m.colour, text: `${m.module} (${KINDS[k.kind]}) ${percent(m.value, p.total[0]!)}` })));
}

/** Entries in lines, each with its left edge. */
function linesOf(entries: Entry[]): (Entry & { x: number })[][] {
  const lines: (Entry & { x: number })[][] = [[]];
  let x = PAD;
  for (const e of entries) {
    const w = 24 + e.text.length * LETTER;
    if (x + w > WIDTH - PAD && x > PAD) {
      lines.push([]);
      x = PAD;
    }
    lines[lines.length - 1]!.push({ ...e, x });
    x += w;
  }
  return lines;
}

const legendTop = PAD + 2 * LINE;
const graphTop = (lines: unknown[][]) => legendTop + (lines[0]!.length ? lines.length * LINE : 0) + 4;

/** Levels below the zoomed frame, and those above it. */
function levelsOf(p: Profile, zoom: number): number {
  let deepest = 0;
  for (let i = zoom; i < p.end[zoom]!; i++) if (p.depth[i]! > deepest) deepest = p.depth[i]!;
  return deepest + 1;
}

/** Names come from programs: no byte of them may end the text, or be none of XML. */
export const escaped = (s: string): string =>
  // eslint-disable-next-line no-control-regex
  s.replace(/[^\t\n\r\u0020-\uD7FF\uE000-\uFFFD\u{10000}-\u{10FFFF}]/gu, '\uFFFD')
    .replace(/[&<>"']/g, (c) => `&#${c.charCodeAt(0)};`);

const cut = (s: string, room: number) => (s.length > room ? `${s.slice(0, Math.max(0, room - 1))}…` : s);

function bars(pic: Picture, colours: string[], top: number): string {
  const { profile: p, zoom, theme, hit } = pic;
  const out: string[] = [];
  const k = (WIDTH - 2 * PAD) / (p.w[zoom]! || 1);
  const bar = (i: number, x: number, w: number, dim: boolean) => {
    const name = p.name[i]!;
    const missed = hit !== null && !hit[name];
    const y = top + p.depth[i]! * ROW;
    const share = p.diff ? '' : `, ${percent(p.total[i]!, p.total[0]!)}`;
    const room = Math.floor((w - 9) / LETTER);
    out.push(
      `<g${dim ? ' opacity="0.55"' : ''}><title>${escaped(p.names[name]!)}${share}</title>` +
      `<rect x="${x.toFixed(2)}" y="${y}" width="${Math.max(w - (w > 2 ? 1 : 0), 0.3).toFixed(2)}" height="${ROW - 1}" fill="${missed ? theme.faint : colourOf({ profile: p, colours }, i)}"/>` +
      (hit?.[name] && w > 3 ? `<rect x="${x.toFixed(2)}" y="${y + ROW - 3}" width="${(w - 1).toFixed(2)}" height="2" fill="${theme.hit}"/>` : '') +
      (room >= 2 ? `<text x="${(x + 4).toFixed(2)}" y="${y + 13}" fill="${missed ? theme.faintText : theme.fg}">${escaped(cut(p.short[name]!, room))}</text>` : '') +
      '</g>',
    );
  };
  for (let q = p.parent[zoom]!; q >= 0; q = p.parent[q]!) bar(q, PAD, WIDTH - 2 * PAD, true);
  for (let i = zoom; i < p.end[zoom]!; ) {
    const w = p.w[i]! * k;
    if (w < 0.3) i = p.end[i]!;
    else {
      bar(i, PAD + (p.x[i]! - p.x[zoom]!) * k, w, false);
      i++;
    }
  }
  return out.join('\n');
}

export function svg(pic: Picture): string {
  const { theme } = pic;
  const lines = linesOf(entriesOf(pic));
  const top = graphTop(lines);
  const height = top + levelsOf(pic.profile, pic.zoom) * ROW + PAD;
  const legend = lines.flatMap((l, n) => l.map((e) => {
    const y = legendTop + n * LINE;
    return `<rect x="${e.x}" y="${y + 3}" width="11" height="11" rx="3" fill="${e.colour}"/><text x="${e.x + 16}" y="${y + 13}" fill="${theme.fg}">${escaped(e.text)}</text>`;
  }));
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" width="${WIDTH}" height="${height}" font-family="ui-monospace, Menlo, 'DejaVu Sans Mono', monospace" font-size="11.5">`,
    `<title>${escaped(pic.title)}</title>`,
    `<rect width="${WIDTH}" height="${height}" fill="${theme.bg}"/>`,
    `<text x="${PAD}" y="${PAD + 12}" font-family="${escaped(SANS)}" font-size="15" font-weight="600" fill="${theme.fg}">${escaped(pic.title)}</text>`,
    `<text x="${PAD}" y="${PAD + 30}" font-family="${escaped(SANS)}" font-size="12" fill="${theme.faintText}">${escaped(pic.caption)}</text>`,
    ...legend,
    bars(pic, coloursOf(pic.profile, theme), top),
    '</svg>',
  ].join('\n');
}

/** The same, by what paints the page. */
export function png(pic: Picture): Promise<Blob | null> {
  const { profile, zoom, hit, theme } = pic;
  const lines = linesOf(entriesOf(pic));
  const top = graphTop(lines);
  const rows = Math.min(levelsOf(profile, zoom) * ROW, MAX_HEIGHT);
  const ratio = rows > MAX_HEIGHT / 2 ? 1 : 2;
  const canvas = document.createElement('canvas');
  canvas.width = WIDTH * ratio;
  canvas.height = (top + rows + PAD) * ratio;
  const c = canvas.getContext('2d')!;
  c.scale(ratio, ratio);
  c.fillStyle = theme.bg;
  c.fillRect(0, 0, WIDTH, top + rows + PAD);
  const text = (s: string, x: number, y: number, font: string, colour: string) => {
    c.font = font;
    c.fillStyle = colour;
    c.fillText(s, x, y);
  };
  text(pic.title, PAD, PAD + 12, `600 15px ${SANS}`, theme.fg);
  text(pic.caption, PAD, PAD + 30, `12px ${SANS}`, theme.faintText);
  lines.forEach((l, n) => l.forEach((e) => {
    c.fillStyle = e.colour;
    c.fillRect(e.x, legendTop + n * LINE + 3, 11, 11);
    text(e.text, e.x + 16, legendTop + n * LINE + 13, FONT, theme.fg);
  }));
  c.translate(PAD, top);
  draw(c, { profile, zoom, hit, theme, colours: coloursOf(profile, theme), up: false, width: WIDTH - 2 * PAD, height: rows, top: 0, letter: LETTER });
  return new Promise((done) => canvas.toBlob(done, 'image/png'));
}

export function save(blob: Blob, name: string): void {
  const a = document.createElement('a');
  a.href = URL.createObjectURL(blob);
  a.download = name;
  a.click();
  setTimeout(() => URL.revokeObjectURL(a.href), 10e3);
}
