import assert from 'node:assert/strict';
import { test } from 'node:test';
import registry from '../mock/types.json';
import type { Health, Overview, Registry } from '../src/api';
import { value } from '../src/format';
import { changeOf } from '../src/overview/change';
import { stepsOf } from '../src/overview/first';
import { merge, stepOf, viewOf, type Held, type View } from '../src/overview/model';
import { fold, search, sortRows, unfold } from '../src/overview/rows';
import { bandsOf, stacked, topOf } from '../src/overview/stack';
import { learn, wordOf } from '../src/types';

learn(registry as Registry);

const MIN = 60e3;
const CPU = 'cpu:cpu:nanoseconds';

const service = (id: number, name: string, more = {}) =>
  ({ id, service: name, runtime: 'Go 1.27', parent: 'systemd', short: false, types: [0], first: 0, last: 0, ...more });

/** Five minutes, of which the last has just begun. */
const whole = (more: Partial<Overview> = {}): Overview => ({
  from: 0, to: 5 * MIN, step_ms: MIN, next: 4 * MIN, cpus: 2, memory_kib: 1024 * 1024, types: [CPU], damaged: 0, covered_ms: [],
  machine: [0, [60000, 60000, null, 60000, 9000], [100, 100, null, 100, 100]],
  services: [service(1, 'api'), service(2, 'old')],
  rows: [[1, 3, 0, [30000, 30000, null, 30000, 4000], [10, 10, null, 10, 10]], [2, 1, 1, [6000], [5]]], ...more,
});

const refresh = (more: Partial<Overview> = {}): Overview => whole({
  from: 4 * MIN, to: 6 * MIN, next: 5 * MIN, machine: [0, [50000, 8000], [90, 90]], services: [service(3, 'new')], types: [CPU],
  rows: [[1, 2, 0, [20000, 5000], [11, 12]], [3, 1, 1, [700], [7]]], ...more,
});

test('a refresh replaces the step that was not over, adds new ones, and drops what is out of the window', () => {
  const held = merge(merge(null, whole()), refresh(), MIN)!;
  assert.equal(held.from, MIN);
  assert.equal(held.to, 6 * MIN);
  assert.equal(held.next, 5 * MIN);
  assert.deepEqual(held.machine.cpu, [60000, null, 60000, 50000, 8000]);
  assert.deepEqual(held.services.get(1)!.cpu, [30000, null, 30000, 20000, 5000]);
  assert.deepEqual(held.services.get(1)!.memory, [10, null, 10, 11, 12]);
  assert.equal(held.services.get(1)!.processes, 2);
  assert.deepEqual(held.services.get(2)!.cpu, [6000, null, null, null, null]);
  assert.deepEqual(held.services.get(3)!.cpu, [null, null, null, null, 700]);
  assert.deepEqual(held.services.get(3)!.types, [CPU]);
});

test('a service without a row in a refresh has a gap there, and goes when nothing of it is left', () => {
  const held = merge(merge(null, whole()), refresh(), 2 * MIN)!;
  assert.equal(held.services.has(2), false);
  const quiet = merge(merge(null, whole()), refresh({ rows: [], services: [] }), MIN)!;
  assert.deepEqual(quiet.services.get(1)!.cpu, [30000, null, 30000, null, null]);
});

test('a refresh that does not continue what is held is refused', () => {
  const held = merge(null, whole())!;
  const cases: [string, Partial<Overview>, number][] = [
    ['another step', { step_ms: 2 * MIN }, 0],
    ['a gap before it', { from: 7 * MIN, to: 9 * MIN }, MIN],
    ['a number that nobody has named', { services: [] }, MIN],
    ['a number that means another service now', { services: [service(1, 'other'), service(3, 'new')] }, MIN],
    ['a window that begins earlier', {}, -2 * MIN],
  ];
  for (const [what, more, from] of cases) assert.equal(merge(held, refresh(more), from), null, what);
});

test('the types of a refresh are numbered by itself', () => {
  const held = merge(merge(null, whole()), refresh({ types: ['x', CPU, 'go_heap:inuse_space:bytes'], services: [service(1, 'api', { types: [1, 2] }), service(3, 'new', { types: [0] })] }), 0)!;
  assert.deepEqual(held.services.get(1)!.types, [CPU, 'go_heap:inuse_space:bytes']);
  assert.deepEqual(held.services.get(2)!.types, [CPU]);
});

test('steps are round, and there are at most 72', () => {
  assert.deepEqual([15, 60, 360, 1440, 7 * 1440].map((m) => stepOf(m * MIN) / MIN), [1, 1, 5, 20, 180]);
  assert.equal(stepOf(40e3), MIN);
  assert.equal(stepOf(400 * 1440 * MIN) % (1440 * MIN), 0);
});

test('rates are of whole steps; the one that has just begun is not shown, and gaps stay gaps', () => {
  const v = viewOf(merge(null, whole())!, 4 * MIN + 9e3, 0);
  assert.deepEqual([v.from, v.to], [0, 4 * MIN]);
  assert.deepEqual(v.cpu, [1, 1, null, 1]);
  assert.deepEqual(v.lines[0]!.cpu, [0.5, 0.5, null, 0.5]);
  assert.deepEqual(v.lines[0]!.memory, [10240, 10240, null, 10240]);
  assert.deepEqual(v.lines.map((l) => l.running), [true, false]);
});

test('a long step that is not over counts for the time that it has lasted', () => {
  const held = merge(null, { ...whole(), step_ms: 20 * MIN, to: 100 * MIN, machine: [0, [null, null, 1200e3, 600e3], []], rows: [[1, 1, 2, [600e3, 300e3], [1, 1]]] })!;
  const v = viewOf(held, 70 * MIN, 0);
  assert.deepEqual(v.cpu, [1, 1]);
  assert.equal(v.from, 40 * MIN);
  assert.deepEqual(v.lines[0]!.cpu, [0.5, 0.5]);
});

test('in the first minute the only step is shown, from the start of the server on', () => {
  const held = merge(null, { ...whole(), machine: [0, [null, null, null, null, 15000], []], rows: [[1, 1, 4, [7500], [1]]] })!;
  const v = viewOf(held, 4 * MIN + 45e3, 4 * MIN + 30e3);
  assert.deepEqual(v.cpu, [1]);
  assert.deepEqual(v.lines[0]!.cpu, [0.5]);
  // A start of the server before the step or after it is none of its business.
  assert.deepEqual(viewOf(merge(null, whole())!, 5 * MIN, 3 * MIN).cpu, [1, 1, null, 1, 0.15]);
  assert.deepEqual(viewOf(held, 5 * MIN, 4 * MIN - 5e3).cpu, [0.25]);
});

test('CPU time is of the time that was sampled, not of all of the step', () => {
  const covered_ms = [30e3, 60e3, 0, 15e3, 5e3];
  const held = merge(null, whole({ covered_ms }))!;
  // The fourth took half a minute at least: there are two cores.
  assert.deepEqual(viewOf(held, 5 * MIN, 0).cpu, [2, 1, null, 2, 1.8]);
  assert.deepEqual(viewOf(held, 5 * MIN, 0).lines[0]!.cpu, [1, 0.5, null, 1, 0.8]);
  const later = merge(held, refresh({ covered_ms: [40e3, 10e3] }), MIN)!;
  assert.deepEqual(later.covered, [60e3, 0, 15e3, 40e3, 10e3]);
});

function machine(): View {
  const row = (cpu: (number | null)[]) => ({ cpu: cpu.map((v) => (v == null ? null : v * MIN)), memory: cpu.map((v) => (v == null ? null : 1000)) });
  const rows: [string, object, (number | null)[]][] = [
    ['api', {}, [1, 1, 1]], ['db', { runtime: 'native' }, [2, 2, 2]], ['bash', {}, [0, 0, 0]],
    ['touch', { short: true, parent: 'bash' }, [null, 0.5, null]], ['tr', { short: true, parent: 'bash' }, [0.25, null, null]],
    ['cc1', { short: true, parent: 'make' }, [null, 0.1, 0.1]], ['stray', { short: true, parent: '' }, [null, null, 0.1]],
    ['x'.repeat(127), { runtime: 'Java 21', types: [0, 1, 2] }, [null, 0.01, 0.01]],
  ];
  const raw: Overview = {
    ...whole(), to: 3 * MIN, next: 3 * MIN, cpus: 8, types: [CPU, 'java_alloc:alloc_space:bytes', 'java_alloc:alloc_objects:count'],
    machine: [0, [4, 4.5, 4].map((v) => v * MIN), [1, 1, 1]],
    services: rows.map(([name, more], i) => service(i, name, more)), rows: rows.map(([, , cpu], i) => [i, 1, 0, row(cpu).cpu, row(cpu).memory]),
  };
  return viewOf(merge(null, raw) as Held, 3 * MIN, 0);
}

test('short-lived programs fold by parent, with the sum of their CPU', () => {
  const rows = fold(machine());
  const groups = rows.filter((r) => !r.line);
  assert.deepEqual(groups.map((g) => g.name), ['bash: 2 short-lived programs', 'make: 1 short-lived program', 'unknown parent: 1 short-lived program']);
  assert.deepEqual(groups[0]!.cpu, [0.25, 0.5, 0]);
  assert.equal(groups[0]!.cpuNow, 0.25);
  assert.deepEqual(rows.filter((r) => r.line).map((r) => r.name.slice(0, 4)), ['api', 'db', 'bash', 'xxxx']);
});

test('what runs for a part of the time counts for that part, so that rows add up to the machine', () => {
  const v = machine();
  const rows = fold(v);
  const [longest] = rows.filter((r) => r.name.length === 127);
  assert.ok(Math.abs(longest!.cpuNow! - 0.02 / 3) < 1e-9);
  const all = v.lines.flatMap((l) => l.cpu).reduce<number>((s, c) => s + (c ?? 0), 0) / 3;
  assert.ok(Math.abs(rows.reduce((s, r) => s + r.cpuNow!, 0) - all) < 1e-9);
});

test('an open group shows its programs below it', () => {
  const rows = sortRows(fold(machine()), 'cpu', true);
  const names = unfold(rows, new Set(['gbash']), 'cpu', true).map((r) => r.name);
  const at = names.indexOf('bash: 2 short-lived programs');
  assert.deepEqual(names.slice(at + 1, at + 3), ['touch', 'tr']);
  assert.equal(names.length, rows.length + 2);
});

test('a search finds everything one by one, also by runtime and parent', () => {
  const v = machine();
  assert.deepEqual(search(v, 'TOU').map((r) => r.name), ['touch']);
  assert.deepEqual(search(v, 'bash').map((r) => r.name), ['bash', 'touch', 'tr']);
  assert.deepEqual(search(v, 'java 21').map((r) => r.name.length), [127]);
  assert.deepEqual(search(v, 'nobody'), []);
});

test('every column sorts both ways, and what has no value comes last', () => {
  const rows = fold(machine());
  const names = (key: Parameters<typeof sortRows>[1], down: boolean) => sortRows(rows, key, down).map((r) => r.name.slice(0, 8));
  assert.deepEqual(names('cpu', true).slice(0, 3), ['db', 'api', 'bash: 2 ']);
  assert.equal(names('cpu', false)[0], 'bash');
  assert.deepEqual(names('name', true).slice(0, 3), ['api', 'bash', 'bash: 2 ']);
  assert.equal(names('name', false)[0], 'xxxxxxxx');
  assert.equal(names('runtime', true).at(-4), 'db');
  for (const down of [true, false]) assert.ok(names('memory', down).slice(-3).every((n) => /:|unknown/.test(n)), String(down));
  assert.equal(names('profiles', true)[0], 'xxxxxxxx');
});

test('the machine is divided into its largest rows, the rest and what no sample accounts for', () => {
  const v = machine();
  const slots = new Map<string, number>();
  const bands = bandsOf(v, fold(v), slots);
  assert.deepEqual(bands.map((b) => b.name.slice(0, 12)).slice(0, 2), ['db', 'api']);
  assert.equal(bands.at(-1)!.key, 'lost');
  const sums = stacked(bands);
  for (let i = 0; i < 3; i++) assert.ok(Math.abs(sums.at(-1)![i]! - v.cpu[i]!) < 1e-9);
  // Who is large keeps its colour and its place, whoever is larger now.
  v.lines.find((l) => l.service === 'api')!.cpu.fill(9);
  assert.deepEqual(bandsOf(v, fold(v), slots).slice(0, 2).map((b) => [b.name, b.colour]), [['db', '--band-1'], ['api', '--band-2']]);
});

test('what exceeds the eight largest is the rest', () => {
  const v = machine();
  const many = { ...v, lines: Array.from({ length: 20 }, (_, i) => ({ ...v.lines[0]!, id: i, service: `s${i}`, cpu: [0.1, 0.1, 0.1] })) };
  const bands = bandsOf(many, fold(many), new Map());
  assert.equal(bands.length, 10);
  assert.deepEqual([bands[8]!.name, bands[8]!.points[0]!.toFixed(2)], ['12 more', '1.20']);
});

test('the scale reaches all cores, unless nearly all would be idle', () => {
  assert.equal(topOf([1, 3, null], 8), 8);
  assert.equal(topOf([9], 8), 9);
  assert.equal(topOf([0.5, 1], 64), 1.5);
  assert.ok(topOf([], 8) > 0);
});

const steady = (n: number, v: number, wobble = 0) => Array.from({ length: n }, (_, i) => v + wobble * Math.sin(i * 7));

test('a change is larger than what the row usually does', () => {
  const c = changeOf([...steady(50, 0.2, 0.02), ...steady(10, 0.8, 0.02)], 0.05)!;
  assert.ok(Math.abs(c.before - 0.2) < 0.02 && Math.abs(c.now - 0.8) < 0.02);
  assert.equal(c.since, 50);
  assert.ok(changeOf([...steady(50, 0.8), ...steady(10, 0.2)], 0.05)!.now < 0.3);
});

test('a change that began a while ago is still one, and says since when', () => {
  assert.equal(changeOf([...steady(38, 0.2, 0.01), ...steady(22, 0.9, 0.01)], 0.05)!.since, 38);
  // A leak: it grows from the fortieth step on.
  const leak = Array.from({ length: 60 }, (_, i) => 100e6 + Math.max(0, i - 40) * 20e6);
  assert.ok(changeOf(leak, 32e6)!.since > 40);
});

test('no change: too short a history, a spike, noise, what it does now and then, and what is small', () => {
  const none: [string, (number | null)[], number][] = [
    ['two minutes of data', [0.1, 1], 0.05],
    ['a service that has just started', [...new Array(50).fill(null), ...steady(10, 3)], 0.05],
    ['one spike', [...steady(58, 0.2), 5, 0.2], 0.05],
    ['noise', steady(60, 1, 0.6), 0.05],
    ['every ten minutes', Array.from({ length: 60 }, (_, i) => (i % 10 >= 6 ? 2 : 0.1)), 0.05],
    ['from next to nothing to a little', [...steady(50, 0.001), ...steady(10, 0.02)], 0.05],
    ['a tenth more', [...steady(50, 2), ...steady(10, 2.2)], 0.05],
    ['gaps only', new Array(60).fill(null), 0.05],
    ['nothing at all', [], 0.05],
  ];
  for (const [what, points, least] of none) assert.equal(changeOf(points, least), null, what);
});

test('CPU is said in cores, however little it is', () => {
  const cores = (v: number) => value(v * 1e9, 'cores').replace(/\u2009/g, ' ');
  assert.deepEqual([0, 0.0001, 0.0031, 0.0307, 0.4, 1, 2.634, 14.26, 128].map(cores),
    ['0 cores', '<0.001 cores', '0.003 cores', '0.03 cores', '0.40 cores', '1.00 core', '2.63 cores', '14.3 cores', '128 cores']);
});

test('a profile has a short word on its button', () => {
  assert.deepEqual(registry.types.filter((t, i) => registry.types.findIndex((u) => u.type.split(':')[0] === t.type.split(':')[0] && u.measure === t.measure) === i)
    .filter((t) => !t.type.startsWith('go_oom')).map((t) => wordOf(t.type)),
  ['JVM CPU', 'CPU', 'Off-CPU', 'Heap', 'Alloc', 'Alloc', 'Goroutines', 'Block', 'Lock', 'Mutex']);
  assert.equal(wordOf('dotnet_lock:delay:nanoseconds'), 'Dotnet lock delay');
});

test('the first visit says what comes when', () => {
  const health = { targets: 214, profiled: 0, cpu_samples: 0, interval_ms: 15e3, features: null } as Health;
  const texts = stepsOf(health, 9e3).map((s) => `${s.done} ${s.when}`);
  assert.equal(texts[0], 'true 214 found');
  assert.match(texts[1]!, /^false .*in 6 s$/);
  assert.match(texts[2]!, /^false .*in 21 s$/);
  const later = stepsOf({ ...health, cpu_samples: 5, profiled: 2, features: [{ feature: 'go', title: 'Go', state: 'off', cause: 'privilege', reason: 'not permitted', remedy: 'run as root' }] }, 40e3);
  assert.equal(later[1]!.done, true);
  assert.equal(later[2]!.when, 'not permitted; run as root');
});
