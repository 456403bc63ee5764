/*
 * A function from both sides: the merged trees of its callers and callees. Callers thinner than a
 * pixel are folded into "(other)", like the server does.
 */
import { index, type Profile } from './flame/layout';

interface Sum {
  total: number;
  self: number;
  before: number;
  beforeSelf: number;
}

interface Node extends Sum {
  name: number;
  kids: Map<number, Node> | null;
}

const node = (name: number): Node => ({
  name,
  total: 0,
  self: 0,
  before: 0,
  beforeSelf: 0,
  kids: null,
});

function kid(of: Node, name: number): Node {
  const kids = (of.kids ??= new Map());
  let k = kids.get(name);
  if (!k) kids.set(name, (k = node(name)));
  return k;
}

/** Outermost frames of the function; recursive inner frames are part of them. */
function occurrences(p: Profile, fn: number): number[] {
  const out: number[] = [];
  for (let i = 0; i < p.n; ) {
    if (p.name[i] === fn) {
      out.push(i);
      i = p.end[i]!;
    } else i++;
  }
  return out;
}

function flat(p: Profile, root: Node): Profile {
  const name: number[] = [];
  const depth: number[] = [];
  const sums: Node[] = [];
  const stack: [Node, number][] = [[root, 0]];
  while (stack.length) {
    const [t, d] = stack.pop()!;
    name.push(t.name);
    depth.push(d);
    sums.push(t);
    if (!t.kids) continue;
    const kids = [...t.kids.values()].sort((a, b) => a.total + a.before - b.total - b.before);
    for (const k of kids) stack.push([k, d + 1]);
  }
  const none = new Float64Array(0);
  return index(
    {
      name: Uint32Array.from(name),
      depth: Uint16Array.from(depth),
      self: Float64Array.from(sums, (s) => s.self),
      total: Float64Array.from(sums, (s) => s.total),
      beforeSelf: p.diff ? Float64Array.from(sums, (s) => s.beforeSelf) : none,
      beforeTotal: p.diff ? Float64Array.from(sums, (s) => s.before) : none,
    },
    p,
  );
}

function callees(p: Profile, fn: number, at: number[]): Profile {
  const root = node(fn);
  const open: Node[] = [root];
  for (const i of at) {
    const base = p.depth[i]!;
    for (let j = i; j < p.end[i]!; j++) {
      const d = p.depth[j]! - base;
      const t = d ? (open[d] = kid(open[d - 1]!, p.name[j]!)) : root;
      t.total += p.total[j]!;
      t.self += p.self[j]!;
      if (!p.diff) continue;
      t.before += p.beforeTotal[j]!;
      t.beforeSelf += p.beforeSelf[j]!;
    }
  }
  return flat(p, root);
}

const THIN = 1 / 20000;

function callers(p: Profile, fn: number, at: number[], other: number): Profile {
  const root = node(fn);
  const total = at.reduce((s, i) => s + p.w[i]!, 0);
  // A frame to merge: its value, and the position in its stack.
  const work: { into: Node; leaf: number[]; up: number[] }[] = [{ into: root, leaf: at, up: at }];
  for (const i of at) {
    root.total += p.total[i]!;
    if (p.diff) root.before += p.beforeTotal[i]!;
  }
  while (work.length) {
    const { into, leaf, up } = work.pop()!;
    const groups = new Map<number, { leaf: number[]; up: number[]; width: number }>();
    for (let k = 0; k < leaf.length; k++) {
      const q = p.parent[up[k]!]!;
      if (q <= 0) continue; // the root has no caller
      const name = p.name[q]!;
      let g = groups.get(name);
      if (!g) groups.set(name, (g = { leaf: [], up: [], width: 0 }));
      g.leaf.push(leaf[k]!);
      g.up.push(q);
      g.width += p.w[leaf[k]!]!;
    }
    for (const [name, g] of groups) {
      const thin = g.width < total * THIN && groups.size > 1;
      const t = kid(into, thin ? other : name);
      for (const i of g.leaf) {
        t.total += p.total[i]!;
        if (p.diff) t.before += p.beforeTotal[i]!;
      }
      if (!thin) work.push({ into: t, leaf: g.leaf, up: g.up });
    }
  }
  return flat(p, root);
}

export interface Sandwich {
  callers: Profile;
  callees: Profile;
  id: number;
}

export function sandwich(p: Profile, name: string): Sandwich | null {
  const id = p.names.indexOf(name);
  if (id < 0) return null;
  const at = occurrences(p, id);
  if (!at.length) return null;
  let other = p.names.indexOf('(other)');
  let q = p;
  if (other < 0) {
    other = p.names.length;
    q = {
      ...p,
      names: [...p.names, '(other)'],
      short: [...p.short, '(other)'],
      origins: [...p.origins, { kind: 'other', module: '' }],
      origin: Uint32Array.from([...p.origin, p.origins.length]),
      files: [...p.files, ''],
    };
  }
  return { callers: callers(q, id, at, other), callees: callees(q, id, at), id };
}
