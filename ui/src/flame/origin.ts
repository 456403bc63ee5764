/* Where functions come from: colours by module, and the legend's shares. The server tells kinds and modules. */
import type { Origin } from '../schema';
import type { Theme } from './draw';
import type { Profile } from './layout';

export type Kind = Origin['kind'];

/** In the order in which a reader would ask for them; those of LANGUAGES can be shown alone. */
export const KINDS: Record<Kind, string> = {
  go: 'Go', java: 'Java', python: 'Python', js: 'JavaScript', native: 'Native', runtime: 'Interpreter/VM', kernel: 'Kernel', group: 'Group', other: 'Other',
};
export const LANGUAGES: Kind[] = ['go', 'java', 'python', 'js', 'native'];

export const originOf = (p: Profile, name: number): Origin => p.origins[p.origin[name]!]!;

function hash(s: string): number {
  let h = 2166136261;
  for (let i = 0; i < s.length; i++) h = Math.imul(h ^ s.charCodeAt(i), 16777619);
  h = Math.imul(h ^ (h >>> 16), 0x85ebca6b);
  return (h ^ (h >>> 13)) >>> 0;
}

/** Code that is rarely the reader's own: it steps back. */
const isQuiet = ({ kind, module }: Origin) =>
  kind === 'runtime' || kind === 'other' || kind === 'group' || module === '' || (kind === 'go' && /^(runtime|internal)($|\/)/.test(module));

/**
 * Equal lightness to the eye, whatever the hue: names stay readable on all of them. The kernel has
 * a hue of its own, and red and green are left to comparisons.
 */
export function originColour(o: Origin, dark: boolean): string {
  const h = hash(o.module);
  if (o.kind === 'kernel') return dark ? `oklch(${0.41 + (h % 4) * 0.01} 0.07 62)` : `oklch(${0.86 + (h % 4) * 0.01} 0.075 72)`;
  if (isQuiet(o)) return dark ? `hsl(215 9% ${30 + (h % 5)}%)` : `hsl(215 14% ${82 + (h % 5)}%)`;
  const hue = (h % 20) * 12 + 100;
  const ours = o.kind !== 'native' && (o.kind !== 'go' || o.module === 'main' || o.module.split('/')[0]!.includes('.'));
  const shade = ((h >>> 12) % 4) * 0.015;
  const [light, chroma] = dark ? (ours ? [0.44, 0.085] : [0.4, 0.045]) : ours ? [0.84, 0.075] : [0.89, 0.04];
  return `oklch(${(light! + shade).toFixed(3)} ${chroma} ${hue})`;
}

export const originColours = (p: Profile, theme: Theme): string[] => {
  const of = p.origins.map((o) => originColour(o, theme.dark));
  return Array.from(p.origin, (o) => of[o]!);
};

/** What a legend entry marks: a whole kind, or one module of it. */
export const litKey = (kind: Kind, module?: string) => (module === undefined ? kind : `${kind}:${module}`);

export function litNames(p: Profile, lit: string): Uint8Array | null {
  if (!lit) return null;
  const hit = p.origins.map((o) => Number(litKey(o.kind) === lit || litKey(o.kind, o.module) === lit));
  return Uint8Array.from(p.origin, (o) => hit[o]!);
}

export interface Share {
  kind: Kind;
  module: string;
  colour: string;
  value: number; // self values
}

export interface KindShare {
  kind: Kind;
  value: number;
  modules: Share[]; // the largest, first
}

const MODULES = 8; // in all

/** By kind, the largest first, with the largest modules of all kinds. */
export function legendOf(p: Profile, dark: boolean): KindShare[] {
  const sums = new Float64Array(p.origins.length);
  for (let i = 1; i < p.n; i++) sums[p.origin[p.name[i]!]!]! += p.self[i]!;
  const shares = p.origins.map((o, i): Share => ({ ...o, colour: originColour(o, dark), value: sums[i]! }))
    .filter((s) => s.value > 0).sort((a, b) => b.value - a.value);
  const named = new Set(shares.filter((s) => s.module && s.kind !== 'group').slice(0, MODULES));
  const kinds = new Map<Kind, KindShare>();
  for (const s of shares) {
    const k = kinds.get(s.kind) ?? { kind: s.kind, value: 0, modules: [] };
    k.value += s.value;
    if (named.has(s)) k.modules.push(s);
    kinds.set(s.kind, k);
  }
  return [...kinds.values()].sort((a, b) => b.value - a.value);
}
