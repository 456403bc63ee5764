// /api/overview: CPU time and memory of the machine and of each service, per step.
import { Wrong } from './check.mjs';

const MINUTE = 60e3;
const POINTS = 72;
const ROUND = [1, 2, 5, 10, 15, 20, 30, 60, 120, 180, 240, 360, 720, 1440].map((m) => m * MINUTE);

/** Whole steps around the window, and the first one that is asked for. */
function stepsOf(q, w) {
  const step = Number(q.get('step_ms') ?? ROUND.find((s) => (w.to - w.from) / s <= POINTS) ?? ROUND.at(-1));
  if (step % MINUTE || step < MINUTE) throw new Wrong('step_ms must be a multiple of 60000');
  const whole = Math.floor(w.from / step) * step;
  const to = Math.ceil(w.to / step) * step;
  const since = q.has('since') ? Number(q.get('since')) : 0;
  return { step, from: Math.min(to - step, Math.max(whole, Math.floor(since / step) * step)), to, since };
}

/** Arrays from the first step with data to the last one; null when there is none. */
function trimmed(cpu, memory) {
  const known = cpu.map((v, i) => v != null || memory[i] != null);
  const at = known.indexOf(true);
  const end = known.lastIndexOf(true) + 1;
  return at < 0 ? null : [at, cpu.slice(at, end), memory.slice(at, end)];
}

/* What is over stays as it was: a server has it at hand, too. */
const past = new WeakMap();

function usedIn(of, service, s, x, step) {
  const known = past.get(s) ?? past.set(s, new Map()).get(s);
  const key = `${step} ${x.from}`;
  if (known.has(key)) return known.get(key);
  const memory = of.memory(s, x);
  const ns = memory == null ? null : of.cpu(service, s, x);
  const found = { memory, cpu: ns == null ? null : Math.round(ns / 1e6) };
  if (x.to - x.from === step) known.set(key, found);
  return found;
}

/** `of` is the machine: its services, and what they used in a time. */
export function overview(q, w, of) {
  const { step, from, to, since } = stepsOf(q, w);
  const now = Date.now();
  // The last step is not over yet.
  const steps = Array.from({ length: (to - from) / step }, (_, i) => ({ from: from + i * step, to: Math.min(now, from + (i + 1) * step) })).filter((x) => x.from < x.to);
  const busy = steps.map(() => null);
  const used = steps.map(() => of.services.size ? of.memory_kib * 0.06 : null);
  const types = [];
  const indexOf = (type) => (types.includes(type) ? types.indexOf(type) : types.push(type) - 1);
  const rows = [];
  const services = [];
  [...of.services].forEach(([service, s], id) => {
    const both = steps.map((x) => usedIn(of, service, s, x, step));
    const cpu = both.map((u) => u.cpu);
    const memory = both.map((u) => u.memory);
    cpu.forEach((v, i) => v != null && (busy[i] = (busy[i] ?? 0) + v));
    memory.forEach((v, i) => v != null && !s.short && (used[i] += v));
    const row = trimmed(cpu, memory);
    if (!row) return;
    rows.push([id, s.processes, ...row]);
    if (since && s.start < since) return;
    services.push({
      id, service, runtime: s.runtime ?? '', parent: s.parent ?? '', short: !!s.short, types: typesIn(of, service, s).map(indexOf),
      first: Math.round(s.start), last: Math.round(Math.min(s.end ?? now, now)),
    });
  });
  // Interrupts and the like belong to nobody.
  const whole = (v, x) => (v == null ? null : Math.round(Math.min(of.cpus * (x.to - x.from), v * 1.03 + 0.02 * of.cpus * (x.to - x.from))));
  const machine = trimmed(busy.map((v, i) => whole(v, steps[i])), used.map((v) => v && Math.round(Math.min(of.memory_kib, v))));
  return {
    from, to, step_ms: step, next: Math.min(to - step, Math.floor(now / step) * step), cpus: of.cpus, memory_kib: of.memory_kib,
    covered_ms: Array.from({ length: (to - from) / step }, (_, i) => Math.max(0, Math.round(Math.min(now - from - i * step, step)))),
    machine: machine ?? [0, [], []], types, services, rows, damaged: 0,
  };
}

const typesIn = (of, service, s) => of.typesOf(service, s).map((t) => t.type);
