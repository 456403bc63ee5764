/*
 * Which profile types belong together, and which are no profiles of their own. What they are called comes
 * from the server's registry (/api/types), which is learned once; a type that is not in it is shown all the
 * same. A type is `family:kind`, a kind `name:unit`: what Go and Java programs have in common.
 */
import type { RegisteredEvent, RegisteredMetric, RegisteredType, Registry } from './api';

export const kindOf = (type: string) => type.slice(type.indexOf(':') + 1);
export const familyOf = (type: string) => type.slice(0, type.indexOf(':'));
export const unitOf = (type: string) => type.split(':')[2] ?? 'count';

interface Ranked extends RegisteredType {
  rank: number; // the place among all
}

let types = new Map<string, Ranked>();
let streams = new Map<string, RegisteredMetric>();
let events = new Map<string, RegisteredEvent>();
let moments = new Set<string>(); // families of profiles that come with an event

/** From now on types, metrics and events are called what the server calls them. */
export function learn(registry: Registry): void {
  types = new Map(registry.types.map((t, rank) => [t.type, { ...t, rank }]));
  streams = new Map(registry.metrics.flatMap((m) => (m.stream ? [[m.stream, m]] : [])));
  events = new Map(registry.events.map((e) => [e.event, e]));
  moments = new Set(registry.events.map((e) => e.family));
}

/** The runtime's own numbers: curves, never a flame graph. */
export const isRuntime = (type: string) => streams.has(type);
/** Heap and goroutines of one moment, when memory ran out (events.tsx). */
export const isPicture = (type: string) => moments.has(familyOf(type));
export const isProfile = (type: string) => !isRuntime(type) && !isPicture(type);

const rankOf = (type: string) => types.get(type)?.rank ?? Infinity;
const byRank = <T extends { type: string }>(a: T, b: T) => {
  const [x, y] = [rankOf(a.type), rankOf(b.type)];
  return x === y ? 0 : x - y;
};

/** What there is of a moment, the heap first. */
export const pictures = <T extends { type: string }>(all: T[]): T[] => all.filter((t) => isPicture(t.type)).sort(byRank);

/** "Dotnet lock delay" */
function inWords(...names: string[]): string {
  const words = names.join(' ').replace(/_/g, ' ').trim();
  return words.charAt(0).toUpperCase() + words.slice(1);
}

export interface TypeText {
  title: string;
  help: string;
}

/** A type that is not registered is called what the server calls it. */
export function typeText(type: string): TypeText {
  const [family = '', name = ''] = type.split(':');
  return types.get(type) ?? streams.get(type) ?? { title: inWords(family, name), help: type };
}

export const variantName = (type: string) => types.get(type)?.variant ?? typeText(type).title;

export const eventTitle = (event: string) => events.get(event)?.title ?? inWords(event);

/** The profile that tells most of such an event: the first of its family. */
export function eventType(event: string): string {
  const family = events.get(event)?.family;
  return [...types.keys()].find((t) => familyOf(t) === family) ?? '';
}

/** Types that measure the same thing, the most telling first. */
export interface Card<T> {
  group: string;
  types: T[];
}

/** The types of a service as cards, in the order of the registry; curves and pictures are not among them. */
export function cards<T extends { type: string }>(all: T[]): Card<T>[] {
  const found = new Map<string, Card<T>>();
  for (const t of all.filter((x) => isProfile(x.type)).sort(byRank)) {
    const known = types.get(t.type);
    const key = known ? `${familyOf(t.type)} ${known.measure}` : t.type;
    const card = found.get(key) ?? { group: known?.group ?? 'Other', types: [] };
    card.types.push(t);
    found.set(key, card);
  }
  return [...found.values()];
}

/* Who comes to look for a leak wants the heap first. */
const FIRST = ['inuse_space:bytes', 'cpu:nanoseconds'];

/** The type that is shown when none was asked for. */
export function firstType<T extends { type: string }>(types: T[]): string {
  const all = cards(types).map((c) => c.types[0]!.type);
  const first = FIRST.map((k) => all.find((t) => kindOf(t) === k)).find((t) => t);
  return first ?? all[0] ?? pictures(types)[0]?.type ?? '';
}

/** What Go records only when it is told to: how a program does that, and how to do it from outside. */
export interface OffByDefault {
  type: string;
  reader: string; // of a target (api.ts)
  what: string;
  code: string;
  command(pid: string): string;
}

export const OFF_BY_DEFAULT: OffByDefault[] = [
  {
    type: 'go_block:delay:nanoseconds', reader: 'go-block', what: 'Block profiling',
    code: 'runtime.SetBlockProfileRate(10000)', command: (pid) => `sonde block ${pid} --force-block 10000`,
  },
  {
    type: 'go_mutex:delay:nanoseconds', reader: 'go-mutex', what: 'Mutex profiling',
    code: 'runtime.SetMutexProfileFraction(100)', command: (pid) => `sonde mutex ${pid} --force-mutex 100`,
  },
];

/** Those of a Go program that has nothing of the kind. */
export function offIn(types: { type: string }[]): OffByDefault[] {
  if (!types.some((t) => t.type.startsWith('go_') && !isPicture(t.type))) return [];
  return OFF_BY_DEFAULT.filter((o) => !types.some((t) => familyOf(t.type) === familyOf(o.type)));
}

/** The unit of a delta type per second. Nanoseconds on a processor per second are cores. */
export function rateUnit(type: string): string {
  return kindOf(type) === 'cpu:nanoseconds' ? 'cores' : `${unitOf(type)}/s`;
}
