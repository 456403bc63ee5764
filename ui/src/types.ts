/*
 * What the profile types are: names, which belong together, and which are no profiles of their own.
 * A type is `family:kind`, a kind `name:unit`: what Go and Java programs have in common.
 */

export const kindOf = (type: string) => type.slice(type.indexOf(':') + 1);
export const familyOf = (type: string) => type.slice(0, type.indexOf(':'));
export const unitOf = (type: string) => type.split(':')[2] ?? 'count';

/** The runtime's own numbers: curves, never a flame graph. */
export const isRuntime = (type: string) => type.startsWith('go_runtime:');
/** Heap and goroutines of one moment, when memory ran out (events.tsx). */
export const isPicture = (type: string) => type.startsWith('go_oom:');
export const isProfile = (type: string) => !isRuntime(type) && !isPicture(type);

const GROUPS = ['CPU', 'Memory', 'Goroutines', 'Blocking', 'Mutexes', 'Other'] as const;
export type Group = (typeof GROUPS)[number];

interface Variant {
  kind: string;
  name: string; // beside the other variants of its measure
  title: string;
  about: string;
}

/** One thing that is measured, in one or several ways; the first is what people ask about most. */
interface Measure {
  group: Group;
  family?: string; // any, where there is none
  variants: Variant[];
}

const variant = (kind: string, name: string, title: string, about: string): Variant => ({ kind, name, title, about });

const MEASURES: Measure[] = [
  { group: 'CPU', family: 'java_cpu', variants: [
    variant('cpu:nanoseconds', 'Time', 'CPU of Java code', 'time on a processor, by the JVM itself'),
    variant('samples:count', 'Samples', 'CPU samples of Java code', 'samples taken by the JVM itself'),
  ] },
  { group: 'CPU', variants: [
    variant('cpu:nanoseconds', 'Time', 'CPU', 'time on a processor'),
    variant('samples:count', 'Samples', 'CPU samples', 'samples taken'),
  ] },
  { group: 'CPU', variants: [
    variant('time:nanoseconds', 'Time', 'Waiting (off-CPU)', 'time that threads waited, for what blocked them'),
    variant('waits:count', 'Waits', 'Waits (off-CPU)', 'how often threads waited'),
  ] },
  { group: 'Memory', variants: [
    variant('inuse_space:bytes', 'Bytes', 'Live heap', 'memory in use, after the last collection'),
    variant('inuse_objects:count', 'Objects', 'Live objects', 'objects in use'),
  ] },
  { group: 'Memory', variants: [
    variant('alloc_space:bytes', 'Bytes', 'Allocation rate', 'bytes allocated'),
    variant('alloc_objects:count', 'Objects', 'Allocations', 'objects allocated'),
  ] },
  { group: 'Goroutines', family: 'go_goroutine', variants: [
    variant('goroutine:count', 'All', 'Goroutines', 'goroutines that exist, by where they are'),
    variant('waiting:count', 'Waiting', 'Goroutines waiting', 'for a channel, a lock, a timer, the network'),
    variant('runnable:count', 'Runnable', 'Goroutines runnable', 'ready, without a processor to run on'),
    variant('running:count', 'Running', 'Goroutines running', 'on a processor'),
    variant('syscall:count', 'In syscalls', 'Goroutines in system calls', 'in a call of the kernel'),
  ] },
  { group: 'Blocking', family: 'go_block', variants: [
    variant('delay:nanoseconds', 'Time', 'Blocking', 'time that goroutines were blocked by channels and locks'),
    variant('contentions:count', 'Times', 'Times blocked', 'how often goroutines were blocked'),
  ] },
  { group: 'Blocking', family: 'java_lock', variants: [
    variant('delay:nanoseconds', 'Time', 'Lock waits', 'time that threads waited for monitors and locks, with the class of the lock'),
    variant('contentions:count', 'Times', 'Times waited for locks', 'how often threads waited for monitors and locks'),
  ] },
  { group: 'Mutexes', family: 'go_mutex', variants: [
    variant('delay:nanoseconds', 'Time', 'Mutex delay', 'time that others waited for a lock, by who held it'),
    variant('contentions:count', 'Times', 'Mutex contentions', 'how often others waited for a lock, by who held it'),
  ] },
];

const measureOf = (type: string) =>
  MEASURES.find((m) => (!m.family || m.family === familyOf(type)) && m.variants.some((v) => v.kind === kindOf(type)));

const PICTURES: Variant[] = [
  variant('inuse_space:bytes', 'Bytes', 'Heap', 'with what was allocated since the last collection'),
  variant('inuse_objects:count', 'Objects', 'Objects on the heap', 'with what was allocated since the last collection'),
  variant('goroutine:count', 'Goroutines', 'Goroutines', 'as they were read last'),
];

const among = (list: Variant[] | undefined, type: string) => list?.find((v) => v.kind === kindOf(type));
const variantOf = (type: string) => among(isPicture(type) ? PICTURES : measureOf(type)?.variants, type);

/** What there is of a moment, the heap first. */
export const pictures = <T extends { type: string }>(types: T[]): T[] =>
  PICTURES.flatMap((v) => types.filter((t) => isPicture(t.type) && kindOf(t.type) === v.kind));

export interface TypeText {
  title: string;
  about: string;
}

/** A type that nobody has named yet is called what the server calls it: "Dotnet lock delay". */
export function typeText(type: string): TypeText {
  const known = variantOf(type);
  if (known) return known;
  const [family = '', name = ''] = type.split(':');
  const words = `${family} ${name}`.replace(/_/g, ' ').trim();
  return { title: words.charAt(0).toUpperCase() + words.slice(1), about: type };
}

export const variantName = (type: string) => variantOf(type)?.name ?? typeText(type).title;

/** Types that measure the same thing, the most telling first. */
export interface Card<T> {
  group: Group;
  types: T[];
}

/** The types of a service as cards, in the order of the groups; curves and pictures are not among them. */
export function cards<T extends { type: string }>(types: T[]): Card<T>[] {
  const found = new Map<string, Card<T> & { rank: number }>();
  for (const t of types.filter((x) => isProfile(x.type))) {
    const measure = measureOf(t.type);
    const rank = measure ? MEASURES.indexOf(measure) : MEASURES.length;
    const key = measure ? `${familyOf(t.type)} ${rank}` : t.type;
    const card = found.get(key) ?? { group: measure?.group ?? 'Other', types: [], rank };
    card.types.push(t);
    found.set(key, card);
  }
  const place = (t: T) => measureOf(t.type)?.variants.findIndex((v) => v.kind === kindOf(t.type)) ?? 0;
  for (const c of found.values()) c.types.sort((a, b) => place(a) - place(b));
  return [...found.values()].sort((a, b) => a.rank - b.rank);
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
