import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { RawFlame } from '../src/api';
import { change, rowChange, tone, wholeChange } from '../src/compare';
import { cut, decode, findPath, functions, normalised, pathHash, search } from '../src/flame/layout';
import { sandwich } from '../src/sandwich';

/* all 100: main 60 (walk 40 (walk 30 (leaf 10)), leaf 20), http 40 (leaf 40) */
const raw = (): RawFlame => ({
  unit: 'bytes', mode: 'snapshot', from: 0, to: 60000, total: 100, folded: 0, collections: 4, other: 0,
  names: ['', 'main.main', 'main.walk', 'main.leaf', 'net/http.serve'],
  files: ['', '', '', '', ''],
  origins: [{ kind: 'other', module: '' }, { kind: 'go', module: 'main' }, { kind: 'go', module: 'net/http' }],
  origin: [0, 1, 1, 1, 2],
  name: [0, 1, 2, 2, 3, 3, 4, 3],
  depth: [0, 1, 2, 3, 4, 2, 1, 2],
  self: [0, 0, 10, 20, 10, 20, 0, 40],
  total_of: [100, 60, 40, 30, 10, 20, 40, 40],
});
const profile = () => decode(raw(), 'bytes/s', 60, 60);
const diff = () =>
  decode({ ...raw(), before_total: 50, before_self: [0, 0, 10, 10, 10, 20, 0, 0], before_total_of: [50, 50, 30, 20, 10, 20, 0, 0] }, 'bytes/s', 60, 60);
const row = (p: ReturnType<typeof profile>, name: string) => functions(p).find((r) => p.names[r.id] === name)!;

test('subtree ends and left edges follow from depths', () => {
  const p = profile();
  assert.deepEqual([...p.end], [8, 6, 5, 5, 5, 6, 8, 8]);
  assert.deepEqual([...p.x], [0, 0, 0, 0, 0, 40, 60, 60]);
  assert.equal(p.names[0], 'all');
});

test('recursion counts once in the total of a function', () => {
  const p = profile();
  assert.equal(row(p, 'main.walk').total, 40);
  assert.equal(row(p, 'main.walk').self, 30);
  assert.equal(row(p, 'main.leaf').total, 70);
});

test('hidden stacks leave their callers', () => {
  const p = cut(profile(), { focus: [], hide: ['main.walk'], fold: [] });
  assert.equal(p.total[0], 60);
  assert.equal(row(p, 'main.main').total, 20);
  assert.equal(row(p, 'main.walk'), undefined);
});

test('focus keeps only stacks through a function', () => {
  const p = cut(profile(), { focus: ['main.walk'], hide: [], fold: [] });
  assert.equal(p.total[0], 40);
  assert.equal(row(p, 'net/http.serve'), undefined);
  assert.equal(row(p, 'main.leaf').total, 10);
});

test('collapse gives a function what it calls', () => {
  const p = cut(profile(), { focus: [], hide: [], fold: ['main.main'] });
  assert.equal(p.total[0], 100);
  assert.equal(row(p, 'main.main').self, 60);
  assert.equal(row(p, 'main.walk'), undefined);
});

test('the share of a search counts nested matches once', () => {
  const found = search(profile(), '/^main\\./')!;
  assert.equal(found.weight, 1);
  assert.equal(found.functions, 3);
  assert.equal(search(profile(), 'WALK')!.weight, 0.4);
  assert.throws(() => search(profile(), '/(/'));
});

test('a path hash finds its node again, also in another window', () => {
  const p = profile();
  for (let i = 0; i < p.n; i++) assert.equal(findPath(p, pathHash(p, i)), i);
  const other = cut(p, { focus: [], hide: ['main.walk'], fold: [] });
  const leaf = findPath(other, pathHash(p, 5));
  assert.equal(other.names[other.name[leaf]!], 'main.leaf');
  assert.equal(findPath(p, 'zzzzzz'), 0);
});

test('both halves of a sandwich hold the total of the function', () => {
  const s = sandwich(profile(), 'main.leaf')!;
  assert.equal(s.callers.total[0], 70);
  assert.equal(s.callees.total[0], 70);
  const callers = functions(s.callers).map((r) => [s.callers.names[r.id], r.total]);
  assert.deepEqual(new Map(callers as [string, number][]).get('net/http.serve'), 40);
  assert.deepEqual(new Map(callers as [string, number][]).get('main.main'), 30);
  assert.equal(sandwich(profile(), 'nowhere'), null);
});

test('two windows of a delta type are compared per second', () => {
  const d = { ...raw(), mode: 'delta' as const, before_self: raw().self, before_total_of: raw().total_of };
  const p = decode(d, 'bytes/s', 100, 50);
  assert.equal(p.unit, 'bytes/s');
  assert.equal(p.total[0], 1);
  assert.equal(p.beforeTotal[0], 2);
});

test('changes add up to the change of the whole', () => {
  const p = diff();
  const rows = functions(p);
  const sum = rows.reduce((s, r) => s + rowChange(p, r, 'self').change, 0);
  assert.equal(sum, 50);
  assert.equal(wholeChange(p, rows), 50);
  const n = normalised(p, true);
  assert.deepEqual(change(n, 25, 50), { before: 50, after: 50, change: 0 });
});

test('more is towards one, less towards minus one, nothing is nothing', () => {
  assert.equal(tone(5, 5, 1, 1), 0);
  assert.ok(tone(0, 5, 1, 1) > 0.95);
  assert.ok(tone(5, 0, 1, 1) < -0.95);
  assert.ok(tone(10, 11, 1, 1) > 0.1);
});
