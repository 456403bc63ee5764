/*
 * How profile types group, and which of them are not profiles. Their names come from the server's
 * registry (/api/types), which is loaded once; a type that is not in it is shown all the same.
 * A type is `family:kind`; a kind is `name:unit`, shared by Go and Java.
 */
import type { RegisteredEvent, RegisteredMetric, RegisteredType, Registry } from './api';

export const kindOf = (type: string) => type.slice(type.indexOf(':') + 1);
export const familyOf = (type: string) => type.slice(0, type.indexOf(':'));
export const unitOf = (type: string) => type.split(':')[2] ?? 'count';

interface Ranked extends RegisteredType {
  rank: number; // index in the registry
}

let types = new Map<string, Ranked>();
let streams = new Map<string, RegisteredMetric>();
let counted = new Set<string>(); // families of streams
let events = new Map<string, RegisteredEvent>();
let moments = new Set<string>(); // families of profiles that come with an event

/** Takes the names of types, metrics and events from the server. */
export function learn(registry: Registry): void {
  types = new Map(registry.types.map((t, rank) => [t.type, { ...t, rank }]));
  streams = new Map(registry.metrics.flatMap((m) => (m.stream ? [[m.stream, m]] : [])));
  counted = new Set([...streams.keys()].map(familyOf));
  events = new Map(registry.events.map((e) => [e.event, e]));
  moments = new Set(registry.events.map((e) => e.family));
}

/** Runtime statistics: charts, never a flame graph. By family: earlier versions stored more of them. */
export const isRuntime = (type: string) => counted.has(familyOf(type));
/** OOM snapshots: heap and goroutines of one moment (events.tsx). */
export const isPicture = (type: string) => moments.has(familyOf(type));
export const isProfile = (type: string) => !isRuntime(type) && !isPicture(type);

const rankOf = (type: string) => types.get(type)?.rank ?? Infinity;
const byRank = <T extends { type: string }>(a: T, b: T) => {
  const [x, y] = [rankOf(a.type), rankOf(b.type)];
  return x === y ? 0 : x - y;
};

/** The types of a snapshot, the heap first. */
export const pictures = <T extends { type: string }>(all: T[]): T[] => all.filter((t) => isPicture(t.type)).sort(byRank);

/** The main type of a family of profiles; nothing for runtime statistics. */
export const firstOf = (family: string) => [...types.keys()].find((t) => familyOf(t) === family);

/** "Dotnet lock delay" */
function inWords(...names: string[]): string {
  const words = names.join(' ').replace(/_/g, ' ').trim();
  return words.charAt(0).toUpperCase() + words.slice(1);
}

export interface TypeText {
  title: string;
  help: string;
}

/** A type that is not registered is named after itself: "Dotnet lock delay". */
export function typeText(type: string): TypeText {
  const [family = '', name = ''] = type.split(':');
  return types.get(type) ?? streams.get(type) ?? { title: inWords(family, name), help: type };
}

/* One word for a button, by what is measured; the title where there is none. */
const WORDS: Record<string, string> = {
  cpu: 'CPU', wait: 'Off-CPU', live: 'Heap', allocated: 'Alloc', goroutines: 'Goroutines', blocked: 'Block', held: 'Mutex',
};
const FAMILY_WORDS: Record<string, string> = { java_cpu: 'JVM CPU', java_lock: 'Lock' };

export const wordOf = (type: string) =>
  FAMILY_WORDS[familyOf(type)] ?? WORDS[types.get(type)?.measure ?? ''] ?? typeText(type).title;

export const variantName = (type: string) => types.get(type)?.variant ?? typeText(type).title;

export const eventTitle = (event: string) => events.get(event)?.title ?? inWords(event);

/** The main profile of such an event: the first of its family. */
export function eventType(event: string): string {
  const family = events.get(event)?.family;
  return (family && firstOf(family)) || '';
}

/*
 * What the runtime counts, exactly, where a profile only has samples of it: curves and figures are
 * those of the counter.
 */
const COUNTED: Record<string, string> = { 'go_heap:alloc_space:bytes': 'go_runtime:alloc:bytes' };

/** The type whose curve says how much of this type there is. */
export function countedBy<T extends { type: string }>(type: string, all: T[]): string {
  const counter = COUNTED[type];
  return counter && all.some((t) => t.type === counter) ? counter : type;
}

/** Types of the same measure, the most useful first. */
export interface Card<T> {
  group: string;
  types: T[];
}

/** The profile types of a service as cards, in the order of the registry; no runtime statistics or snapshots. */
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

/* When hunting a leak, you want the heap first. */
const FIRST = ['inuse_space:bytes', 'cpu:nanoseconds'];

/** The type shown by default. */
export function firstType<T extends { type: string }>(types: T[]): string {
  const all = cards(types).map((c) => c.types[0]!.type);
  const first = FIRST.map((k) => all.find((t) => kindOf(t) === k)).find((t) => t);
  return first ?? all[0] ?? pictures(types)[0]?.type ?? '';
}

/** Readers of what Go programs record only on request: off in most of them. */
export const OFF_BY_DEFAULT = [{ reader: 'go-block' }, { reader: 'go-mutex' }];

/** The unit of a delta type per second. CPU nanoseconds per second are cores. */
export function rateUnit(type: string): string {
  return kindOf(type) === 'cpu:nanoseconds' ? 'cores' : `${unitOf(type)}/s`;
}
