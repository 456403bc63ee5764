import assert from 'node:assert/strict';
import { test } from 'node:test';
import { missing, type Feature } from '../src/api';
import { percent, shortName, signed, span, time, value } from '../src/format';
import { foremost, pictureOf, sentence } from '../src/events';
import { scaleTop } from '../src/plot';
import { CURVES, livingShare } from '../src/runtime';
import { curve as drawn, ended, held, latest, listed, stretches } from '../src/series';
import { baseline, comparePreceding, format, parse, rangeWindow, sparkWindow, START, type State } from '../src/state';
import registry from '../mock/types.json';
import { cards, countedBy, eventTitle, eventType, firstType, isProfile, learn, pictures, rateUnit, typeText, variantName } from '../src/types';
import { whyNot } from '../src/whynot';
import type { Feature, Reader, Target } from '../src/api';
import type { MetricCurves, Registry } from '../src/api';

learn(registry as Registry);

test('every state survives its address', () => {
  const s: State = {
    service: 'a/b c?&#%', range: '6h', type: 'go_heap:inuse_space:bytes', sel: { from: 1000, to: 2000 },
    base: { from: 1, to: 900 }, norm: true, per: 'process', group: 'k8s.pod', frames: 'all', only: 'python', lit: 'native:libc.so.6', view: 'sandwich', q: '/a+b&c=d/', fn: 'x/y.(*T[...]).M', zoom: 'abc12',
    focus: ['f1', 'f,2'], hide: ['h'], fold: ['c#'], labels: ['process.pid=12', 'k=v=w'], paused: true,
    filter: 'ä', sort: 'name up',
  };
  assert.deepEqual(parse(format(s)), s);
  assert.deepEqual(parse(format(START)), START);
  assert.deepEqual(parse(format({ ...START, base: 'prev' })).base, 'prev');
});

test('a mangled address gives the overview and not an error', () => {
  for (const hash of ['', '#', '#/s/%E0%A4%A', '#/nowhere?sel=5-1&range=soon&view=pie&base=x'])
    assert.deepEqual(parse(hash), START);
});

test('the preceding window ends where the window begins', () => {
  assert.deepEqual(baseline('prev', { from: 1000, to: 1600 }), { from: 400, to: 1000 });
  assert.deepEqual(rangeWindow('15m', 1e9), { from: 1e9 - 900e3, to: 1e9 });
  assert.deepEqual(rangeWindow('5-9', 1e9), { from: 5, to: 9 });
  assert.deepEqual(rangeWindow('1h', 1e9, 1e9 - 600e3), { from: 1e9 - 600e3, to: 1e9 });
  assert.deepEqual(rangeWindow('1h', 1e9, 1e9), { from: 1e9 - 120e3, to: 1e9 });
});

test('sparklines have whole intervals in every step', () => {
  assert.deepEqual(sparkWindow({ from: 0, to: 3600e3 }, 15e3), { from: 0, to: 3600e3, points: 60 });
  const w = sparkWindow({ from: 0, to: 130e3 }, 15e3);
  assert.equal((w.to - w.from) / w.points, 15e3);
  assert.ok(sparkWindow({ from: 0, to: 7 * 86400e3 }, 2e3).points <= 60);
});

test('values carry their unit', () => {
  const plain = (s: string) => s.replace(/\u2009/g, ' ');
  assert.equal(plain(value(0, 'bytes')), '0 B');
  assert.equal(plain(value(1536, 'bytes')), '1.50 kB');
  assert.equal(plain(value(1048576 * 20, 'bytes/s')), '20.0 MB/s');
  assert.equal(value(12500, 'ppm'), '1.25%');
  assert.equal(plain(value(1023.9, 'bytes')), '1.00 kB');
  assert.equal(plain(value(1234567, 'count')), '1.23 M');
  assert.equal(plain(value(5e8, rateUnit('cpu:cpu:nanoseconds'))), '0.50 cores');
  assert.equal(plain(value(2e6, rateUnit('java:cpu:nanoseconds'))), '0.002 cores');
  assert.equal(plain(value(1.5e10, 'cores')), '15.0 cores');
  assert.equal(plain(value(5e8, rateUnit('go_mutex:delay:nanoseconds'))), '500 ms/s');
  assert.equal(plain(value(null, 'bytes')), '–');
  assert.equal(plain(signed(-2048, 'bytes')), '−2.00 kB');
  assert.equal(percent(1, 3), '33.3%');
  assert.equal(percent(0, 0), '–');
  assert.equal(percent(1, 1e6), '<0.01%');
  assert.equal(span(3600e3), '60 min');
});

test('what was not collected is a gap, not zero', () => {
  assert.deepEqual(drawn('delta', [null, 2e9, null, 0, 1e9, null], 2000), [null, 1e9, null, 0, 5e8, null]);
  assert.deepEqual(drawn('snapshot', [1, 2, null, 3], 1000), [1, 2, null, 3]);
});

test('steps that follow each other are one stretch', () => {
  const s = { from: 1000, step_ms: 10 };
  assert.deepEqual(stretches({ ...s, spread: [] }), []);
  assert.deepEqual(stretches({ ...s, spread: [0, 1, 2, 5, 7, 8] }),
    [{ from: 1000, to: 1030 }, { from: 1050, to: 1060 }, { from: 1070, to: 1090 }]);
});

test('of many windows the first are listed and the rest counted', () => {
  const text = (n: number) => listed(Array.from({ length: n }, (_, i) => ({ from: i, to: i + 1 })), (w) => `${w.from}`);
  assert.equal(text(1), '0');
  assert.equal(text(5), '0, 1, 2, 3, 4');
  assert.equal(text(400), '0, 1, 2, 3, 4 and 395 more');
});

test('types that are not registered have a title', () => {
  assert.deepEqual(typeText('dotnet_lock:delay:nanoseconds'), { title: 'Dotnet lock delay', help: 'dotnet_lock:delay:nanoseconds' });
  assert.equal(variantName('dotnet_lock:delay:nanoseconds'), 'Dotnet lock delay');
  assert.equal(typeText('odd').title, 'Odd');
  assert.equal(eventTitle('disk_full'), 'Disk full');
});

test('titles, help and variants are those of the registry', () => {
  for (const t of registry.types) {
    assert.deepEqual([typeText(t.type).title, typeText(t.type).help, variantName(t.type)], [t.title, t.help, t.variant]);
    const [card] = cards([t]);
    assert.equal(card?.group, isProfile(t.type) ? t.group : undefined);
  }
  for (const m of registry.metrics.filter((x) => x.stream)) assert.deepEqual(typeText(m.stream!).title, m.title);
  for (const e of registry.events) assert.deepEqual([eventTitle(e.event), eventType(e.event)], [e.title, 'go_oom:inuse_space:bytes']);
  for (const type of CURVES) assert.notEqual(typeText(type).help, type);
});

test('the page shows types in the order of the registry', () => {
  const shown = registry.types.filter((t) => isProfile(t.type));
  assert.deepEqual(cards(shown.slice().reverse()).flatMap((c) => c.types), shown);
});

const typed = (...types: string[]) => types.map((type) => ({ type }));
const GO = typed(
  'cpu:cpu:nanoseconds', 'cpu:samples:count', 'go_block:contentions:count', 'go_block:delay:nanoseconds',
  'go_goroutine:goroutine:count', 'go_goroutine:waiting:count', 'go_heap:alloc_space:bytes', 'go_heap:inuse_objects:count',
  'go_heap:inuse_space:bytes', 'go_oom:inuse_space:bytes', 'go_runtime:heap_live:bytes', 'odd:thing:count',
);

test('types that measure the same thing share a card, and cards have groups', () => {
  const all = cards(GO).map((c) => [c.group, ...c.types.map((t) => variantName(t.type))]);
  assert.deepEqual(all, [
    ['CPU', 'Time', 'Samples'], ['Memory', 'Bytes', 'Objects'], ['Memory', 'Bytes'], ['Goroutines', 'All', 'Waiting'],
    ['Blocking', 'Time', 'Count'], ['Other', 'Odd thing'],
  ]);
});

test('neither curves nor pictures are profiles, and a picture is shown first only when there is nothing else', () => {
  assert.equal(GO.filter((t) => isProfile(t.type)).length, 10);
  assert.equal(firstType(GO), 'go_heap:inuse_space:bytes');
  assert.equal(firstType(typed('cpu:samples:count', 'cpu:cpu:nanoseconds')), 'cpu:cpu:nanoseconds');
  assert.equal(firstType(typed('go_oom:inuse_space:bytes', 'go_runtime:alloc:bytes')), 'go_oom:inuse_space:bytes');
  assert.equal(firstType([]), '');
  const moment = typed('go_oom:goroutine:count', 'go_oom:inuse_objects:count', 'go_oom:inuse_space:bytes');
  assert.deepEqual(pictures(moment).map((t) => variantName(t.type)), ['Bytes', 'Objects', 'Goroutines']);
  assert.equal(firstType(moment), 'go_oom:inuse_space:bytes');
});

const reader = (family: string, cause: string | null, reason: string | null = null, remedy: string | null = null) =>
  ({ family, available: !cause, cause, reason, remedy, trouble: null }) as Reader;
const target = (...readers: Reader[]) => ({ readers }) as Target;
const OFF_CPU = [{ feature: 'off-cpu', state: 'off', reason: 'not enabled', remedy: 'start sonde run with --offcpu 1ms' }] as Feature[];

test('what could be there and is not says why, in the words of the server', () => {
  const go = target(
    reader('go_heap', null), reader('go_block', 'profiling_off', 'off here', 'turn it on'), reader('go_mutex', null),
    reader('go_goroutine', 'pending', 'not examined yet'), reader('java_alloc', 'not_java', 'not a Java program'), reader('go_runtime', 'denied', 'no'),
  );
  assert.deepEqual(whyNot(typed('go_heap:inuse_space:bytes', 'cpu:cpu:nanoseconds'), [go], OFF_CPU), [
    { type: 'go_block:delay:nanoseconds', state: 'off', reason: 'off here', remedy: 'turn it on' },
    { type: 'go_mutex:delay:nanoseconds', state: 'empty', reason: 'On, and nothing was recorded in this range.', remedy: '' },
    { type: 'offcpu:time:nanoseconds', state: 'off', reason: 'not enabled', remedy: 'start sonde run with --offcpu 1ms' },
  ]);
});

test('there is nothing to say about what is stored, about other runtimes and about the dead', () => {
  const native = target(reader('go_heap', 'not_go', 'not a Go program'), reader('cpu', 'no_btf', 'no types', 'use another kernel'));
  assert.deepEqual(whyNot(typed('cpu:cpu:nanoseconds', 'offcpu:time:nanoseconds'), [native], OFF_CPU), []);
  assert.deepEqual(whyNot([], [native], null).map((w) => [w.type, w.remedy]), [['cpu:cpu:nanoseconds', 'use another kernel']]);
  assert.deepEqual(whyNot(typed('go_heap:inuse_space:bytes'), [], OFF_CPU), []);
});

test('of several processes most decide, and one that has it is enough', () => {
  const off = (reason: string) => target(reader('go_block', 'profiling_off', reason));
  assert.equal(whyNot([], [off('a'), off('b'), off('b')], null)[0]!.reason, 'b');
  assert.equal(whyNot([], [off('a'), target(reader('go_block', null))], null)[0]!.state, 'empty');
});

test('a snapshot holds until the next is due, and a longer silence is a hole', () => {
  const n = null;
  assert.deepEqual(held([n, 1, n, n, 2, n, n, n, 3, n, n, 4, n]), [n, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 4, 4]);
  assert.deepEqual(held([1, n, n, 2, n, n, 3, n, n, n, n, n, n, 4, n, n, n]), [1, 1, 1, 2, 2, 2, 3, n, n, n, n, n, n, 4, 4, 4, n]);
  assert.deepEqual(held([1, 2, n, 3]), [1, 2, n, 3]);
  assert.deepEqual(held([n, n]), [n, n]);
});

test('what is collected less often has not ended between two collections', () => {
  const n = null;
  assert.equal(ended([1, 1, 1, 1, n, n, n]), true);
  assert.equal(ended([1, n, n, n, 1, n, n, n, 1, n, n, n]), false);
  assert.equal(latest([1, 2, n], false), 2);
});

test('a bound far above the curves does not flatten them', () => {
  const curve = (top: number, loose = false) => ({ name: '', colour: '', points: [0, null, top], loose });
  assert.equal(scaleTop([curve(10), curve(15, true)]), 15);
  assert.equal(scaleTop([curve(10), curve(30), curve(9000, true)]), 30);
  assert.equal(scaleTop([]), 1);
});

const OOM = {
  kind: 'oom_kill', time: Date.UTC(2024, 1, 3, 12, 3, 11), service: 's', pid: 7, executable: null, container: null,
  rss_bytes: 1.9 * 2 ** 30, picture: 'kill', inuse_bytes: 5, top: { name: 'a/main.appendToCache', file: null, self: 1, share: 0.94 },
};

test('an event is a sentence and leads to its own picture', () => {
  const plain = (e: typeof OOM | object) => sentence({ ...OOM, ...e }, true).replace(/\u2009/g, ' ');
  assert.equal(plain({}), 'OOM-killed at 2024-02-03 12:03:11, 1.90 GB; 94.0% in main.appendToCache');
  assert.equal(plain({ kind: 'oom_near', rss_bytes: null, top: null }), 'Near its memory limit at 2024-02-03 12:03:11, heap 5 B');
  const state = parse(format({ ...START, service: 's', ...pictureOf(OOM) }));
  assert.deepEqual([state.type, state.sel, state.labels], ['go_oom:inuse_space:bytes', { from: OOM.time, to: OOM.time + 1 }, ['process.pid=7']]);
  const near = { ...OOM, kind: 'oom_near', time: OOM.time + 5 };
  assert.equal(foremost([near, OOM]), OOM);
  assert.equal(foremost([near]), near);
});

test('times are of the zone that was asked for', () => {
  assert.equal(time(Date.UTC(2024, 1, 3, 4, 5, 6), true, Date.UTC(2024, 1, 3, 9)), '04:05:06');
  assert.equal(time(Date.UTC(2024, 1, 3, 4, 5, 6), true, Date.UTC(2024, 1, 4)), '2024-02-03 04:05:06');
});

test('bars have names without the path of their package', () => {
  assert.equal(shortName('github.com/a/b.(*T).M'), 'b.(*T).M');
  assert.equal(shortName('slices.Sort[go.shape.[]a/b.C]'), 'slices.Sort[go.shape.[]a/b.C]');
});

test('what began with the store is compared with its own first half', () => {
  const w = { from: 1000, to: 3000 };
  assert.deepEqual(comparePreceding(START, w, 1000).sel, { from: 2000, to: 3000 });
  assert.deepEqual(comparePreceding(START, w, 2000).sel, { from: 2500, to: 3000 });
  assert.equal(comparePreceding(START, w, 500).sel, null);
  assert.deepEqual(comparePreceding({ ...START, sel: w }, w, 1000).sel, w);
});

test('what nobody asked for is not missing', () => {
  const f = (feature: string, state: Feature['state'], cause: string | null): Feature =>
    ({ feature, title: feature, state, cause, reason: cause && 'why', remedy: cause && 'what helps' });
  const features = [f('cpu', 'on', null), f('java', 'off', 'disabled'), f('go', 'limited', 'privilege'), f('oom-kills', 'off', 'no_btf')];
  assert.deepEqual(missing(features).map((x) => x.feature), ['go', 'oom-kills']);
  assert.deepEqual(missing(null), []);
});

test('a share of several processes counts those that live, by their processors', () => {
  const curves = (...rows: [string, (number | null)[]][]) => ({
    series: rows.map(([pid, points]) => ({ labels: [{ key: 'process.pid', value: pid }], points, buckets: null, sums: null })),
  }) as unknown as MetricCurves;
  const { points, living } = livingShare(
    curves(['1', [100, 100, null, null]], ['2', [null, 400, 400, null]], ['3', [null, 9, null, null]]),
    curves(['1', [2, 2, null, null]], ['2', [null, 4, 4, null]]),
  );
  assert.deepEqual(points, [100, 300, 400, null]);
  assert.equal(living, 1);
  assert.deepEqual(livingShare(curves(), curves()), { points: [], living: 0 });
});

test('what the runtime counts is drawn instead of what was sampled', () => {
  const all = (...types: string[]) => types.map((type) => ({ type }));
  assert.equal(countedBy('go_heap:alloc_space:bytes', all('go_runtime:alloc:bytes')), 'go_runtime:alloc:bytes');
  assert.equal(countedBy('go_heap:alloc_space:bytes', all('go_heap:alloc_space:bytes')), 'go_heap:alloc_space:bytes');
  assert.equal(countedBy('cpu:cpu:nanoseconds', all('go_runtime:alloc:bytes')), 'cpu:cpu:nanoseconds');
});
