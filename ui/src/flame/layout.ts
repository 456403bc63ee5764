/*
 * A profile as columns, depth first. A node's subtree is the range [i, end[i]), so that drawing,
 * searching and filtering are plain loops that skip whole subtrees.
 */
import type { Mode, RawFlame } from '../api';
import { shortName } from '../format';
import type { Origin } from '../schema';

export interface Columns {
  name: Uint32Array;
  depth: Uint16Array;
  self: Float64Array;
  total: Float64Array;
  beforeSelf: Float64Array; // empty without a second window
  beforeTotal: Float64Array;
}

export interface Profile extends Columns {
  n: number;
  levels: number;
  names: string[];
  short: string[];
  files: string[];
  variants: Record<number, string[]>; // by name: what compilers appended to it
  origins: Origin[];
  origin: Uint32Array; // by name: index into origins
  end: Uint32Array;
  parent: Int32Array;
  x: Float64Array; // left edge and width, in the unit that is drawn
  w: Float64Array;
  diff: boolean;
  norm: boolean;
  unit: string;
  mode: Mode;
  folded: number;
  collections: number;
}

type Meta = Pick<
  Profile,
  'names' | 'short' | 'files' | 'variants' | 'origins' | 'origin' | 'diff' | 'norm' | 'unit' | 'mode' | 'folded' | 'collections'
>;

const NONE = new Float64Array(0);

/** Widths: the value itself; for two windows the sum, so vanished nodes keep their place. */
function widths(c: Columns, m: Meta): Float64Array {
  if (!m.diff) return c.total;
  const n = c.total.length;
  const w = new Float64Array(n);
  const ka = m.norm ? 1 / (c.total[0] || 1) : 1;
  const kb = m.norm ? 1 / (c.beforeTotal[0] || 1) : 1;
  for (let i = 0; i < n; i++) w[i] = c.total[i]! * ka + c.beforeTotal[i]! * kb;
  return w;
}

export function index(c: Columns, m: Meta): Profile {
  const n = c.name.length;
  const w = widths(c, m);
  const x = new Float64Array(n);
  const next = new Float64Array(n); // where the next child begins
  const end = new Uint32Array(n);
  const parent = new Int32Array(n);
  let levels = 0;
  for (let i = 0; i < n; i++) if (c.depth[i]! >= levels) levels = c.depth[i]! + 1;
  const open = new Int32Array(levels + 1);
  let top = 0;
  for (let i = 0; i < n; i++) {
    const d = Math.min(c.depth[i]!, top);
    while (top > d) end[open[--top]!] = i;
    const p = top ? open[top - 1]! : -1;
    parent[i] = p;
    if (p >= 0) {
      x[i] = next[p]!;
      next[p] = x[i]! + w[i]!;
    }
    next[i] = x[i]!;
    open[top++] = i;
  }
  while (top) end[open[--top]!] = n;
  // Named one by one: callers hand over whole profiles as columns and as what they belong to.
  const { name, depth, self, total, beforeSelf, beforeTotal } = c;
  const { names, short, files, variants, origins, origin, diff, norm, unit, mode, folded, collections } = m;
  return {
    name, depth, self, total, beforeSelf, beforeTotal,
    names, short, files, variants, origins, origin, diff, norm, unit, mode, folded, collections,
    n, levels, end, parent, x, w,
  };
}

function scale(values: number[] | undefined, by: number): Float64Array {
  if (!values) return NONE;
  const out = new Float64Array(values);
  if (by !== 1) for (let i = 0; i < out.length; i++) out[i]! *= by;
  return out;
}

/** Two windows of a delta type are compared per second: they need not be of the same length. */
export function decode(raw: RawFlame, perSecond: string, seconds: number, beforeSeconds: number): Profile {
  const diff = !!raw.before_total_of;
  const rate = diff && raw.mode === 'delta';
  const a = rate ? 1 / seconds : 1;
  const b = rate ? 1 / beforeSeconds : 1;
  const names = raw.names.map((s, i) => s || (i === raw.name[0] ? 'all' : '(unknown)'));
  return index(
    {
      name: new Uint32Array(raw.name),
      depth: new Uint16Array(raw.depth),
      self: scale(raw.self, a),
      total: scale(raw.total_of, a),
      beforeSelf: scale(raw.before_self, b),
      beforeTotal: scale(raw.before_total_of, b),
    },
    {
      names,
      short: names.map(shortName),
      files: raw.files,
      variants: Object.fromEntries((raw.variants ?? []).map((v) => [v.name, v.suffixes])),
      origins: raw.origins,
      origin: Uint32Array.from(raw.origin),
      diff,
      norm: false,
      unit: rate ? perSecond : raw.unit,
      mode: raw.mode,
      folded: raw.folded * a,
      collections: raw.collections,
    },
  );
}

export function normalised(p: Profile, norm: boolean): Profile {
  return p.norm === norm || !p.diff ? p : index(p, { ...p, norm });
}

export interface Cuts {
  focus: string[]; // only stacks through one of these
  hide: string[]; // no stacks through these
  fold: string[]; // what these call counts as theirs
}

function idsOf(p: Profile, names: string[]): Set<number> {
  const wanted = new Set(names);
  const out = new Set<number>();
  p.names.forEach((s, i) => wanted.has(s) && out.add(i));
  return out;
}

/** A profile without what the reader cut away; totals are added up again from what stays. */
export function cut(p: Profile, cuts: Cuts): Profile {
  if (!cuts.focus.length && !cuts.hide.length && !cuts.fold.length) return p;
  const focus = idsOf(p, cuts.focus);
  const hide = idsOf(p, cuts.hide);
  const fold = idsOf(p, cuts.fold);
  const self = new Float64Array(p.n);
  const before = new Float64Array(p.diff ? p.n : 0);
  let inside = cuts.focus.length ? 0 : p.n; // nodes before this index are in focus
  for (let i = 0; i < p.n; ) {
    const f = p.name[i]!;
    if (hide.has(f)) {
      i = p.end[i]!;
      continue;
    }
    if (focus.has(f)) inside = Math.max(inside, p.end[i]!);
    const folded = fold.has(f);
    if (i < inside) {
      self[i] = folded ? p.total[i]! : p.self[i]!;
      if (p.diff) before[i] = folded ? p.beforeTotal[i]! : p.beforeSelf[i]!;
    }
    i = folded ? p.end[i]! : i + 1;
  }
  return rebuilt(p, self, before);
}

function rebuilt(p: Profile, self: Float64Array, before: Float64Array): Profile {
  const total = self.slice();
  const beforeTotal = before.slice();
  for (let i = p.n - 1; i > 0; i--) {
    const q = p.parent[i]!;
    total[q]! += total[i]!;
    if (p.diff) beforeTotal[q]! += beforeTotal[i]!;
  }
  const keep: number[] = [];
  for (let i = 0; i < p.n; i++) if (i === 0 || total[i]! > 0 || beforeTotal[i]! > 0) keep.push(i);
  const pick = (a: Float64Array) => (p.diff ? Float64Array.from(keep, (i) => a[i]!) : NONE);
  return index(
    {
      name: Uint32Array.from(keep, (i) => p.name[i]!),
      depth: Uint16Array.from(keep, (i) => p.depth[i]!),
      self: Float64Array.from(keep, (i) => self[i]!),
      total: Float64Array.from(keep, (i) => total[i]!),
      beforeSelf: pick(before),
      beforeTotal: pick(beforeTotal),
    },
    p,
  );
}

export interface Found {
  hit: Uint8Array; // by name
  frames: number;
  functions: number;
  weight: number; // of the profile's width, nested matches once
}

/** Text finds itself in any case; /text/ is a regular expression. Throws when that is wrong. */
export function search(p: Profile, query: string): Found | null {
  if (!query) return null;
  const m = /^\/(.+?)(?:\/(i?))?$/.exec(query);
  const re = m ? new RegExp(m[1]!, m[2] ?? '') : null;
  const low = query.toLowerCase();
  const hit = new Uint8Array(p.names.length);
  let functions = 0;
  p.names.forEach((s, i) => {
    if (re ? re.test(s) : s.toLowerCase().includes(low)) hit[i] = 1;
  });
  const seen = new Uint8Array(hit.length);
  let frames = 0;
  let weight = 0;
  for (let i = 0, skip = 0; i < p.n; i++) {
    const f = p.name[i]!;
    if (!hit[f]) continue;
    frames++;
    if (!seen[f]) {
      seen[f] = 1;
      functions++;
    }
    if (i >= skip) {
      weight += p.w[i]!;
      skip = p.end[i]!;
    }
  }
  return { hit, frames, functions, weight: p.w[0] ? weight / p.w[0] : 0 };
}

function nameHash(s: string): number {
  let h = 2166136261;
  for (let i = 0; i < s.length; i++) h = Math.imul(h ^ s.charCodeAt(i), 16777619);
  return h;
}

const step = (h: number, f: number) => Math.imul(h ^ f, 0x9e3779b1) ^ (h >>> 15);

/** A short name for the path to a node, the same in every window that has this path. */
export function pathHash(p: Profile, node: number): string {
  if (node <= 0) return '';
  const path: number[] = [];
  for (let i = node; i > 0; i = p.parent[i]!) path.push(p.name[i]!);
  let h = 0;
  for (const f of path.reverse()) h = step(h, nameHash(p.names[f]!));
  return (h >>> 0).toString(36);
}

/** The node with that path; the root when this window has none. */
export function findPath(p: Profile, hash: string): number {
  const wanted = parseInt(hash, 36);
  if (!hash || !Number.isFinite(wanted)) return 0;
  const names = p.names.map(nameHash);
  const at = new Int32Array(p.n);
  for (let i = 1; i < p.n; i++) {
    at[i] = step(at[p.parent[i]!]!, names[p.name[i]!]!);
    if (at[i]! >>> 0 === wanted) return i;
  }
  return 0;
}

export interface Row {
  id: number;
  self: number;
  total: number;
  beforeSelf: number;
  beforeTotal: number;
}

/** Sums by function. Recursion counts once in the total: only the outermost frame adds to it. */
export function functions(p: Profile): Row[] {
  const rows: Row[] = [];
  const at = new Uint32Array(p.names.length); // index into rows, plus one
  const until = new Uint32Array(p.names.length);
  for (let i = 1; i < p.n; i++) {
    const f = p.name[i]!;
    if (!at[f]) at[f] = rows.push({ id: f, self: 0, total: 0, beforeSelf: 0, beforeTotal: 0 });
    const r = rows[at[f]! - 1]!;
    r.self += p.self[i]!;
    if (p.diff) r.beforeSelf += p.beforeSelf[i]!;
    if (i < until[f]!) continue;
    until[f] = p.end[i]!;
    r.total += p.total[i]!;
    if (p.diff) r.beforeTotal += p.beforeTotal[i]!;
  }
  return rows;
}
