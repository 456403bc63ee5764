/*
 * What /api/overview has sent so far: curves of the machine and of each service, one point per whole
 * step. A refresh brings the last steps only and is merged into what is held.
 */
import type { Overview, OverviewService } from '../api';
import type { Points } from '../series';

interface Track {
  cpu: Points; // milliseconds of CPU time in the step
  memory: Points; // KiB
}

interface Known extends Omit<OverviewService, 'types'>, Track {
  types: string[];
  processes: number;
}

export interface Held {
  from: number;
  to: number;
  step_ms: number;
  next: number;
  cpus: number;
  memory_kib: number;
  damaged: number;
  covered: Points; // milliseconds of the step in which CPUs were sampled
  machine: Track;
  services: Map<number, Known>;
}

const MINUTE = 60e3;
const POINTS = 72;
const ROUND = [1, 2, 5, 10, 15, 20, 30, 60, 120, 180, 240, 360, 720, 1440].map((m) => m * MINUTE);

/** A round step with at most 72 points; beyond that, whole days. */
export function stepOf(length_ms: number): number {
  const day = 1440 * MINUTE;
  return ROUND.find((s) => length_ms / s <= POINTS) ?? Math.ceil(length_ms / POINTS / day) * day;
}

const nothing = (steps: number): Track => ({ cpu: new Array(steps).fill(null), memory: new Array(steps).fill(null) });

/** Copies points to where they belong; what lies before the first step is dropped. */
function put(into: Points, points: Points, at: number): void {
  points.forEach((v, i) => at + i >= 0 && at + i < into.length && (into[at + i] = v));
}

const silent = (t: Track) => t.cpu.every((v) => v == null) && t.memory.every((v) => v == null);

/** Whether the response continues what is held: the same server, the same steps, no time in between. */
function continues(held: Held, raw: Overview, from: number): boolean {
  const news = new Map(raw.services.map((s) => [s.id, s.service]));
  const known = (id: number) => news.has(id) || held.services.has(id);
  const renamed = ([id, name]: [number, string]) => held.services.has(id) && held.services.get(id)!.service !== name;
  // A clock that was put right moves the window by a little: that is not worth all of it anew.
  return raw.step_ms === held.step_ms && raw.from <= held.to && from >= held.from - held.step_ms
    && raw.rows.every(([id]) => known(id)) && ![...news].some(renamed);
}

/**
 * The response alone, or merged into what is held, from `from` on; null when it does not continue that: then
 * everything has to be asked for again.
 */
export function merge(held: Held | null, raw: Overview, from = raw.from): Held | null {
  if (held && !continues(held, raw, from)) return null;
  const start = held ? Math.max(from, held.from) : raw.from;
  const step = raw.step_ms;
  const steps = Math.max(0, Math.round((raw.to - start) / step));
  const index = (ms: number) => Math.round((ms - start) / step);
  const track = (before: Track | null | undefined, at: number, cpu: Points, memory: Points): Track => {
    const out = nothing(steps);
    if (held && before) {
      const stays = Math.max(0, Math.round((raw.from - held.from) / step));
      put(out.cpu, before.cpu.slice(0, stays), index(held.from));
      put(out.memory, before.memory.slice(0, stays), index(held.from));
    }
    put(out.cpu, cpu, index(raw.from) + at);
    put(out.memory, memory, index(raw.from) + at);
    return out;
  };
  const about = new Map<number, Omit<Known, keyof Track>>(held?.services);
  for (const s of raw.services)
    about.set(s.id, { ...s, types: s.types.map((i) => raw.types[i]!), processes: about.get(s.id)?.processes ?? 0 });
  const rows = new Map(raw.rows.map((r) => [r[0], r]));
  const services = new Map<number, Known>();
  for (const [id, s] of about) {
    const [, processes = s.processes, at = 0, cpu = [], memory = []] = rows.get(id) ?? [];
    const known = { ...s, processes, ...track(held?.services.get(id), at, cpu, memory) };
    if (!silent(known)) services.set(id, known);
  }
  return {
    from: start, to: raw.to, step_ms: step, next: raw.next, cpus: raw.cpus, memory_kib: raw.memory_kib, damaged: raw.damaged,
    covered: track(held && { cpu: held.covered, memory: [] }, 0, raw.covered_ms, []).cpu, machine: track(held?.machine, ...raw.machine), services,
  };
}

/** One service, in the units of the page. */
export interface Line {
  id: number;
  service: string;
  runtime: string;
  parent: string;
  short: boolean;
  types: string[];
  processes: number;
  cpu: Points; // cores
  memory: Points; // bytes
  last: number; // when it was last seen
  running: boolean;
}

export interface View {
  from: number;
  to: number;
  step_ms: number;
  cpus: number;
  memory_bytes: number;
  cpu: Points; // of the machine, in cores
  memory: Points;
  lines: Line[];
}

/* Less of a step than this is too little to be compared with whole ones. */
const ENOUGH = 2 * MINUTE;
/* In the first seconds a rate would be a guess. */
const LEAST = 5000;

/** The steps worth showing: from the first with data up to the last that is over, or long under way. */
function shown(h: Held, now: number): [number, number] {
  const tracks = [h.machine, ...h.services.values()];
  const has = (i: number) => tracks.some((t) => t.cpu[i] != null || t.memory[i] != null);
  let first = 0;
  while (first < h.machine.cpu.length && !has(first)) first++;
  const over = Math.floor((now - h.from) / h.step_ms);
  const under = now - h.from - over * h.step_ms;
  const end = over <= first || under >= ENOUGH ? over + 1 : over;
  return [first, Math.max(first, Math.min(end, h.machine.cpu.length))];
}

/** CPU time of the step. It takes at least this, divided by the cores: what is sampled last, at an exit, is not said to be covered. */
function usedIn(h: Held, i: number): number {
  let sampled = 0;
  for (const s of h.services.values()) sampled += s.cpu[i] ?? 0;
  return Math.max(sampled, h.machine.cpu[i] ?? 0);
}

/** `started`: of the server, perhaps in the midst of the first step. */
export function viewOf(h: Held, now: number, started: number): View {
  const [first, end] = shown(h, now);
  // How much of a step was looked at. Where CPUs are not sampled: the last one is not over, the first one may have begun late.
  const length = (i: number) => {
    if (h.covered[i]) return Math.max(LEAST, h.covered[i]!, usedIn(h, i) / (h.cpus || Infinity));
    const begin = h.from + i * h.step_ms;
    const until = Math.min(begin + h.step_ms, now);
    const since = i === first && started > begin && started < until ? started : begin;
    return Math.max(LEAST, until - since);
  };
  const lengths = Array.from({ length: end - first }, (_, i) => length(first + i));
  const cores = (points: Points) => points.slice(first, end).map((v, i) => (v == null ? null : v / lengths[i]!));
  const bytes = (points: Points) => points.slice(first, end).map((v) => (v == null ? null : v * 1024));
  const lines: Line[] = [];
  for (const s of h.services.values()) {
    const [cpu, memory] = [cores(s.cpu), bytes(s.memory)];
    if (silent({ cpu, memory })) continue;
    let at = cpu.length - 1;
    while (cpu[at] == null && memory[at] == null) at--;
    const { id, service, runtime, parent, short, types, processes } = s;
    const last = Math.min(now, Math.max(s.last, h.from + (first + at) * h.step_ms));
    lines.push({ id, service, runtime, parent, short, types, processes, cpu, memory, last, running: at >= cpu.length - 2 && !short });
  }
  return {
    from: h.from + first * h.step_ms, to: h.from + end * h.step_ms, step_ms: h.step_ms, cpus: h.cpus, memory_bytes: h.memory_kib * 1024,
    cpu: cores(h.machine.cpu), memory: bytes(h.machine.memory), lines,
  };
}
