/*
 * The rows of the table: services, and one row for the short-lived programs of each parent. A search
 * shows what it finds one by one.
 */
import type { Points } from '../series';
import { cards } from '../types';
import type { Line, View } from './model';

export interface Row {
  key: string;
  name: string;
  line: Line | null; // null: a group of short-lived programs
  members: Row[]; // of the group
  parent: string; // of the group
  inside: boolean; // a program of a group that is open
  cpu: Points;
  mean: number; // cores over the window
  cpuNow: number | null; // null: not running, or not known
  memoryNow: number | null;
}

/** The average of the last tenth: few samples fall into a single step. */
export function lately(points: Points): number | null {
  const known = points.slice(-Math.max(3, Math.ceil(points.length / 10))).filter((v): v is number => v != null);
  return known.length ? known.reduce((s, v) => s + v, 0) / known.length : null;
}

const sum = (points: Points) => points.reduce<number>((s, v) => s + (v ?? 0), 0);

/** Its share of the machine's time: where it was not there, it used nothing, so that rows add up to the machine. */
function lineRow(line: Line, collected: boolean[], inside = false): Row {
  const known = line.memory.filter((v) => v != null);
  return {
    key: `s${line.id}`, name: line.service, line, members: [], parent: '', inside, cpu: line.cpu, mean: sum(line.cpu) / line.cpu.length,
    cpuNow: line.running && lately(line.cpu) != null ? lately(added([line], collected)) : null, memoryNow: line.running ? known[known.length - 1] ?? null : null,
  };
}

/** The sum of curves. Where anything was collected, a program that is not there used nothing. */
export function added(lines: { cpu: Points }[], collected: boolean[]): Points {
  return collected.map((yes, i) => (yes ? lines.reduce((s, l) => s + (l.cpu[i] ?? 0), 0) : null));
}

export const collectedIn = (v: View): boolean[] => v.cpu.map((c, i) => c != null || v.lines.some((l) => l.cpu[i] != null));

const programs = (n: number) => `${n} short-lived ${n === 1 ? 'program' : 'programs'}`;

function groupRow(parent: string, members: Line[], collected: boolean[]): Row {
  const cpu = added(members, collected);
  return {
    key: `g${parent}`, name: `${parent || 'unknown parent'}: ${programs(members.length)}`, line: null, members: members.map((m) => lineRow(m, collected, true)), parent, inside: false,
    cpu, mean: sum(cpu) / cpu.length, cpuNow: lately(cpu), memoryNow: null,
  };
}

/** Services, and short-lived programs by parent. */
export function fold(v: View): Row[] {
  const parents = new Map<string, Line[]>();
  const collected = collectedIn(v);
  const rows: Row[] = [];
  for (const l of v.lines)
    if (!l.short) rows.push(lineRow(l, collected));
    else if (parents.has(l.parent)) parents.get(l.parent)!.push(l);
    else parents.set(l.parent, [l]);
  for (const [parent, members] of parents) rows.push(groupRow(parent, members, collected));
  return rows;
}

/** Everything whose name, runtime or parent contains the text. */
export function search(v: View, text: string): Row[] {
  const low = text.toLowerCase();
  const collected = collectedIn(v);
  return v.lines.filter((l) => `${l.service}\n${l.runtime}\n${l.short ? l.parent : ''}`.toLowerCase().includes(low)).map((l) => lineRow(l, collected));
}

export type SortKey = 'name' | 'runtime' | 'cpu' | 'memory' | 'processes' | 'profiles';

/* What has no value comes last, whatever the direction; text is sorted from A to Z first. */
const VALUE: Record<SortKey, (r: Row) => number | string | null> = {
  name: (r) => r.name.toLowerCase(),
  runtime: (r) => r.line?.runtime || null,
  cpu: (r) => r.cpuNow,
  memory: (r) => r.memoryNow,
  processes: (r) => (r.line?.running ? r.line.processes : null),
  profiles: (r) => (r.line ? profilesOf(r.line).length || null : null),
};

export function sortRows(rows: Row[], key: SortKey, down: boolean): Row[] {
  const keyed = rows.map((row) => ({ row, v: VALUE[key](row) }));
  const compare = (a: number | string, b: number | string) =>
    typeof a === 'string' ? (a < String(b) ? -1 : a > String(b) ? 1 : 0) : Number(b) - a;
  keyed.sort((a, b) => {
    const has = Number(b.v != null) - Number(a.v != null);
    const by = a.v != null && b.v != null ? (down ? 1 : -1) * compare(a.v, b.v) : 0;
    return has || by || b.row.mean - a.row.mean || (a.row.name < b.row.name ? -1 : 1);
  });
  return keyed.map((k) => k.row);
}

/** With the programs of open groups, in the same order. */
export function unfold(rows: Row[], open: Set<string>, key: SortKey, down: boolean): Row[] {
  return rows.flatMap((r) => (open.has(r.key) ? [r, ...sortRows(r.members, key, down)] : [r]));
}

const profiles = new WeakMap<string[], string[]>();

/** The main type of each profile that a service has, in the order of the registry. */
export function profilesOf(line: Line): string[] {
  const known = profiles.get(line.types);
  if (known) return known;
  const found = cards(line.types.map((type) => ({ type }))).map((c) => c.types[0]!.type);
  profiles.set(line.types, found);
  return found;
}
