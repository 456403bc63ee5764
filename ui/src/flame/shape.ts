/*
 * A profile with frames taken out: how a program starts and how an interpreter calls itself (folded),
 * or all frames but those of one language. Values never get lost: what a frame spent itself stays, as
 * a leaf below its caller or as its caller's own.
 */
import { KINDS, originOf, type Kind } from './origin';
import { index, type Profile } from './layout';

/** Where threads begin. Interpreters' own frames are known by their kind. */
const STARTS = new Set([
  '_start', '__libc_start_main', '__libc_start_main_impl', '__libc_start_call_main', 'clone', 'clone3', '__clone', '__clone3', 'start_thread',
  'runtime.goexit', 'runtime.main', 'runtime.rt0_go', 'runtime.mstart', 'runtime.mstart0', 'runtime.mstart1',
  'thread_native_entry', 'ThreadJavaMain', 'JavaMain', 'call_stub', 'java.lang.Thread.run', 'java.lang.Thread.runWith',
  'java.lang.VirtualThread.run', 'std::rt::lang_start', 'std::rt::lang_start_internal',
]);

const INTERPRETED: Kind[] = ['python', 'java', 'js'];

const enum Fate {
  keep,
  hoist, // what it calls moves up; what it spent itself stays, as a leaf
  give, // what it spent itself is its caller's
}

/** Nodes that have an interpreted frame below them. */
function aboveInterpreted(p: Profile): Uint8Array {
  const of = p.names.map((_, n) => INTERPRETED.includes(originOf(p, n).kind));
  const above = new Uint8Array(p.n);
  for (let i = p.n - 1; i > 0; i--) if (above[i] || of[p.name[i]!]) above[p.parent[i]!] = 1;
  return above;
}

function foldFates(p: Profile): Uint8Array | null {
  const kinds = p.names.map((_, n) => originOf(p, n).kind);
  const starts = p.names.map((s) => STARTS.has(s));
  const above = aboveInterpreted(p);
  const fates = new Uint8Array(p.n);
  let any = false;
  for (let i = 1; i < p.n; i++) {
    const n = p.name[i]!;
    const q = p.parent[i]!;
    // A start is one only at the root: a thread that a function starts begins another stack.
    const first = q === 0 || fates[q] === Fate.hoist || kinds[p.name[q]!] === 'group';
    if ((starts[n] && first && p.end[i]! > i + 1) || (kinds[n] === 'runtime' && above[i])) {
      fates[i] = Fate.hoist;
      any = true;
    }
  }
  return any ? fates : null;
}

class Tree {
  name: number[];
  parent = [-1];
  self: number[];
  before: number[];
  private ids = new Map<number, number>();

  constructor(private p: Profile) {
    this.name = [p.name[0]!];
    this.self = [0];
    this.before = [0];
  }

  child(parent: number, name: number): number {
    // One more name than the profile has: that of what is of no language.
    const key = parent * (this.p.names.length + 1) + name;
    let id = this.ids.get(key);
    if (id === undefined) {
      this.ids.set(key, (id = this.name.push(name) - 1));
      this.parent.push(parent);
      this.self.push(0);
      this.before.push(0);
    }
    return id;
  }

  add(node: number, i: number): void {
    this.self[node]! += this.p.self[i]!;
    if (this.p.diff) this.before[node]! += this.p.beforeSelf[i]!;
  }

  /** Depth first, the largest child first and "(other)" last. */
  columns(meta: Profile): Profile {
    const n = this.name.length;
    const total = Float64Array.from(this.self);
    const beforeTotal = Float64Array.from(this.before);
    const kids: number[][] = Array.from({ length: n }, () => []);
    for (let i = n - 1; i > 0; i--) {
      const q = this.parent[i]!;
      total[q]! += total[i]!;
      beforeTotal[q]! += beforeTotal[i]!;
      kids[q]!.push(i);
    }
    const weight = (i: number) => (meta.names[this.name[i]!] === '(other)' ? -1 : total[i]! + beforeTotal[i]!);
    const order: number[] = [];
    const depth: number[] = [];
    const open: [number, number][] = [[0, 0]];
    while (open.length) {
      const [i, d] = open.pop()!;
      order.push(i);
      depth.push(d);
      for (const k of kids[i]!.sort((a, b) => weight(a) - weight(b))) open.push([k, d + 1]);
    }
    const pick = (a: ArrayLike<number>) => Float64Array.from(order, (i) => a[i]!);
    const none = new Float64Array(0);
    return index(
      {
        name: Uint32Array.from(order, (i) => this.name[i]!),
        depth: Uint16Array.from(depth),
        self: pick(this.self),
        total: pick(total),
        beforeSelf: meta.diff ? pick(this.before) : none,
        beforeTotal: meta.diff ? pick(beforeTotal) : none,
      },
      meta,
    );
  }
}

function remade(p: Profile, meta: Profile, fates: Uint8Array, rest: number): Profile {
  const tree = new Tree(p);
  const at = new Uint32Array(p.n);
  tree.add(0, 0);
  for (let i = 1; i < p.n; i++) {
    const up = at[p.parent[i]!]!;
    const name = p.name[i]!;
    const homeless = up === 0 || originOf(p, tree.name[up]!).kind === 'group';
    at[i] = fates[i] === Fate.keep ? tree.child(up, name) : up;
    if (fates[i] === Fate.keep) tree.add(at[i]!, i);
    else if (p.self[i] || p.beforeSelf[i])
      tree.add(fates[i] === Fate.hoist ? tree.child(up, name) : homeless ? tree.child(up, rest) : up, i);
  }
  return tree.columns(meta);
}

/** Whether folding would change anything. */
export const isFoldable = (p: Profile): boolean => foldFates(p) !== null;

export function folded(p: Profile): Profile {
  const fates = foldFates(p);
  return fates ? remade(p, p, fates, 0) : p;
}

/** Only the frames of one language: what they call of others is their own. */
export function onlyKind(p: Profile, kind: Kind): Profile {
  const kept = p.names.map((_, n) => [kind, 'group'].includes(originOf(p, n).kind));
  const fates = Uint8Array.from(p.name, (n) => (kept[n] ? Fate.keep : Fate.give));
  const name = `(not called from ${KINDS[kind]})`;
  const meta: Profile = {
    ...p,
    names: [...p.names, name],
    short: [...p.short, name],
    files: [...p.files, ''],
    origins: [...p.origins, { kind: 'other', module: '' }],
    origin: Uint32Array.from([...p.origin, p.origins.length]),
  };
  return remade(p, meta, fates, p.names.length);
}

/** The languages that the profile has functions of. */
export const languagesOf = (p: Profile, of: Kind[]): Kind[] => of.filter((k) => p.origins.some((o) => o.kind === k));
