import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { RawFlame } from '../src/api';
import type { Theme } from '../src/flame/draw';
import { escaped, svg, type Picture } from '../src/flame/export';
import { cut, decode, functions, type Profile } from '../src/flame/layout';
import { legendOf, litNames, originColour, type Kind } from '../src/flame/origin';
import { folded, isFoldable, onlyKind } from '../src/flame/shape';
import { imageName } from '../src/images';
import { perProcess, processesIn } from '../src/processes';
import { startMarks } from '../src/starts';

const THEME: Theme = { dark: false, blind: false, bg: '#fff', fg: '#111', faint: '#eee', faintText: '#555', dust: '#ccc', hit: '#d4407f' };

/* "name kind:module self", indented by depth. */
function parse(text: string, before = false): RawFlame {
  const raw: RawFlame = { unit: 'nanoseconds', mode: 'delta', from: 0, to: 1000, total: 0, folded: 0, collections: 1, other: 0, names: [], files: [], origins: [], origin: [], name: [], depth: [], self: [], total_of: [] };
  for (const line of text.split('\n').filter((l) => l.trim())) {
    const [name, origin, self] = line.trim().split(' ') as [string, string, string];
    const [kind, module] = origin.split(':') as [Kind, string];
    let o = raw.origins.findIndex((x) => x.kind === kind && x.module === module);
    if (o < 0) o = raw.origins.push({ kind, module }) - 1;
    let n = raw.names.indexOf(name);
    if (n < 0) {
      n = raw.names.push(name) - 1;
      raw.files.push('');
      raw.origin.push(o);
    }
    raw.name.push(n);
    raw.depth.push(line.search(/\S/));
    raw.self.push(Number(self));
  }
  raw.total_of = raw.self.slice();
  for (let i = raw.self.length - 1; i > 0; i--) {
    let q = i - 1;
    while (raw.depth[q]! >= raw.depth[i]!) q--;
    raw.total_of[q]! += raw.total_of[i]!;
  }
  raw.total = raw.total_of[0]!;
  if (before) Object.assign(raw, { before_total: raw.total, before_self: raw.self.slice(), before_total_of: raw.total_of.slice() });
  return raw;
}

const make = (text: string, before = false) => decode(parse(text, before), 'cores', 1, 1);
const shown = (p: Profile) => Array.from(p.name, (n, i) => `${' '.repeat(p.depth[i]!)}${p.names[n]} ${p.self[i]} ${p.total[i]}`).join('\n');

const PYTHON = `
all other: 0
 _start native:libc.so.6 1
  Py_BytesMain runtime:python3.11 0
   <module> python:rank 2
    score python:rank 10
     PyList_Sort runtime:python3.11 4
      key python:rank 20
     PyDict_Get runtime:python3.11 8
     ddot native:libblas.so 16
   Py_Finalize runtime:python3.11 32
 clone3 native:libc.so.6 0
  start_thread native:libc.so.6 0
   ddot native:libblas.so 64
`;

test('start-up and interpreter frames fold, and every value stays', () => {
  const p = make(PYTHON);
  assert.ok(isFoldable(p));
  assert.equal(shown(folded(p)), [
    'all 0 157', ' ddot 64 64', ' <module> 2 60', '  score 10 58', '   key 20 20', '   ddot 16 16', '   PyDict_Get 8 8', '   PyList_Sort 4 4',
    ' Py_Finalize 32 32', ' _start 1 1',
  ].join('\n'));
});

test('interpreter frames without a function of its language below stay as they are', () => {
  const p = make('all other: 0\n gc runtime:libjvm.so 1\n  mark runtime:libjvm.so 2\n');
  assert.equal(isFoldable(p), false);
  assert.equal(folded(p), p);
});

test('a start that a function calls is not folded', () => {
  const p = make('all other: 0\n main native:app 0\n  clone native:libc.so.6 1\n   f native:app 1\n');
  assert.equal(folded(p), p);
});

test('groups stay above what is folded', () => {
  const p = folded(make('all other: 0\n pid=1 group: 0\n  runtime.main go:runtime 0\n   main.main go:main 5\n'));
  assert.equal(shown(p), 'all 0 5\n pid=1 0 5\n  main.main 5 5');
});

test('one language alone has what its functions call', () => {
  const p = onlyKind(make(PYTHON), 'python');
  assert.equal(shown(p), ['all 0 157', ' (not called from Python) 97 97', ' <module> 2 60', '  score 38 58', '   key 20 20'].join('\n'));
  assert.equal(functions(p).reduce((s, r) => s + r.self, 0), 157);
});

test('folding a comparison folds both windows', () => {
  const p = folded(make(PYTHON, true));
  assert.deepEqual([...p.beforeTotal], [...p.total]);
  assert.equal(p.beforeTotal[0], 157);
});

test('a name with a dot has no colour of its own: its library has', () => {
  const c = (kind: Kind, module: string) => originColour({ kind, module }, false);
  const p = make('all other: 0\n method_vectorcall.x native:libfoo.so 1\n  memcpy native:libfoo.so 1\n  vfs_read kernel:kernel 1\n');
  assert.equal(p.origin[1], p.origin[2]);
  assert.notEqual(c('native', 'libfoo.so'), c('kernel', 'kernel'));
  assert.notEqual(c('python', 'rank'), c('native', 'rank'));
  assert.match(c('runtime', 'python3.11'), /^hsl\(215 /);
});

/* Relative luminance of what originColour() writes: hsl of little colour, or oklch. */
function luminance(colour: string): number {
  const ok = /oklch\(([\d.]+) ([\d.]+) (\d+)\)/.exec(colour);
  if (!ok) return (Number(/ (\d+)%\)$/.exec(colour)![1]) / 100) ** 2.2;
  const [L, C, h] = ok.slice(1).map(Number) as [number, number, number];
  const [a, b] = [C * Math.cos((h * Math.PI) / 180), C * Math.sin((h * Math.PI) / 180)];
  const [l, m, s] = [L + 0.3963377774 * a + 0.2158037573 * b, L - 0.1055613458 * a - 0.0638541728 * b, L - 0.0894841775 * a - 1.291485548 * b].map((x) => x ** 3) as [number, number, number];
  const [R, G, B] = [4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s, -1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s, -0.0041960863 * l - 0.7034186147 * m + 1.707614701 * s];
  return 0.2126 * R! + 0.7152 * G! + 0.0722 * B!;
}

test('names are readable on all colours, light and dark', () => {
  const texts = { false: 0.009, true: 0.87 }; // #14181d and #eef1f5
  for (const dark of [false, true])
    for (const kind of ['go', 'java', 'python', 'native', 'runtime', 'kernel', 'other'] as Kind[])
      for (let i = 0; i < 200; i++) {
        const [x, y] = [luminance(originColour({ kind, module: `m${i}` }, dark)), texts[`${dark}`]];
        const contrast = (Math.max(x, y) + 0.05) / (Math.min(x, y) + 0.05);
        assert.ok(contrast >= 4.5, `${kind} ${dark} ${contrast}`);
      }
});

test('the legend adds up self values by kind and module', () => {
  const legend = legendOf(make(PYTHON), false);
  assert.deepEqual(legend.map((k) => [k.kind, k.value]), [['native', 81], ['runtime', 44], ['python', 32]]);
  assert.deepEqual(legend[0]!.modules.map((m) => [m.module, m.value]), [['libblas.so', 80], ['libc.so.6', 1]]);
  const p = make(PYTHON);
  const names = (lit: string) => p.names.filter((_, i) => litNames(p, lit)![i]);
  assert.deepEqual(names('python'), ['<module>', 'score', 'key']);
  assert.deepEqual(names('native:libblas.so'), ['ddot']);
  assert.equal(litNames(p, ''), null);
});

const picture = (p: Profile, patch: Partial<Picture> = {}): Picture =>
  ({ profile: p, zoom: 0, hit: null, theme: THEME, title: 'shop · CPU', caption: 'a window', ...patch });

test('an image has caption, legend, names and marks', () => {
  const p = make(PYTHON);
  const s = svg(picture(p));
  assert.match(s, /^<svg xmlns="http:\/\/www\.w3\.org\/2000\/svg"/);
  for (const text of ['shop · CPU', 'a window', 'libblas.so (Native) 51.0%', '>score<', '<title>score, 36.9%</title>', '>&#60;module&#62;<']) assert.ok(s.includes(text), text);
  assert.ok(!s.includes(THEME.hit) && !/https?:\/\/(?!www\.w3\.org)/.test(s));
  assert.ok(svg(picture(p, { hit: litNames(p, 'python') })).includes(THEME.hit));
  // Zoomed in, what is beside is not drawn.
  const zoomed = svg(picture(p, { zoom: p.names.indexOf('<module>') }));
  assert.ok(zoomed.includes('>score<') && !zoomed.includes('Py_Finalize'));
});

test('a comparison has its own colours as legend', () => {
  const s = svg(picture(make(PYTHON, true)));
  for (const text of ['>less<', '>unchanged<', '>more<']) assert.ok(s.includes(text));
});

test('no name breaks out of an image', () => {
  const evil = '</title><script>alert(1)</script>&"\u0000\u0007\ud800';
  assert.doesNotMatch(escaped(evil), /[<>"\u0000\u0007\ud800]/u);
  const raw = parse('all other: 0\n x native:lib 1\n');
  raw.names[1] = evil;
  raw.origins[1]!.module = evil;
  assert.ok(!svg(picture(decode(raw, 'cores', 1, 1), { title: evil, caption: evil })).includes('<script'));
  assert.equal(imageName('a/b "x"', 'cpu:cpu:nanoseconds', 0, 'svg'), 'a_b__x_-cpu-19700101T000000Z.svg');
});

const label = (key: string, ...values: [string, number, number][]) => ({ key, values: values.map(([value, first, last]) => ({ value, first, last })) });

test('processes that began and new versions are marked, those near each other once', () => {
  const w = { from: 0, to: 3600e3 };
  const labels = { labels: [
    label('process.pid', ['1', 0, 3600e3], ['2', 1800e3, 3600e3], ['3', 1801e3, 3600e3], ['4', 3000e3, 3600e3]),
    label('service.version', ['1.0', 0, 1800e3], ['1.1', 1800e3, 3600e3]),
    label('host.name', ['a', 0, 1], ['b', 1800e3, 2]),
  ] };
  const marks = startMarks(labels, w, 15e3, true);
  assert.deepEqual(marks.map((m) => [m.kind, m.at]), [['build', 1800e3], ['start', 3000e3]]);
  assert.match(marks[0]!.text, /^New version 1\.1, 2 processes started \(/);
  assert.match(marks[1]!.text, /^Process 4 started/);
  // One version alone is not new.
  assert.equal(startMarks({ labels: [label('service.version', ['1.1', 1800e3, 3600e3])] }, w, 15e3, true).length, 0);
  const many = Array.from({ length: 500 }, (_, i): [string, number, number] => [String(i), 60e3 + i * 7e3, 3600e3]);
  assert.ok(startMarks({ labels: [label('process.pid', ...many)] }, w, 15e3, true).length <= 12);
});

test('a build is new where another of the same executable was there before', () => {
  const w = { from: 0, to: 3600e3 };
  const builds = (...values: [string, number, string][]) => ({
    key: 'process.executable.build_id.gnu',
    values: values.map(([value, first, build_of]) => ({ value, first, last: 3600e3, build_of })),
  });
  const one = builds(['aaaaaaaa11', 0, 'shop'], ['bbbbbbbb22', 1800e3, 'shop'], ['cccccccc33', 900e3, 'sed']);
  const marks = startMarks({ labels: [one] }, w, 15e3, true);
  assert.deepEqual(marks.map((m) => [m.kind, m.at]), [['build', 1800e3]]);
  assert.match(marks[0]!.text, /^New build bbbbbbbb of shop \(/);
  // Go's own ids and GNU's are of one executable.
  const go = { ...builds(['Fk3_/x', 2400e3, 'shop']), key: 'process.executable.build_id.go' };
  assert.equal(startMarks({ labels: [one, go] }, w, 15e3, true).length, 2);
  // Many at once are one mark that is short.
  const many = Array.from({ length: 40 }, (_, i): [string, number, string] => [`${i}`.padStart(8, '0'), 1800e3 + i, 'shop']);
  const crowd = startMarks({ labels: [builds(['aaaaaaaa11', 0, 'shop'], ...many)] }, w, 15e3, true);
  assert.equal(crowd.length, 1);
  assert.match(crowd[0]!.text, /^New build 00000000 of shop, .*, 37 more \(/);
});

test('what compilers appended goes with its name', () => {
  const raw = parse('all other: 0\n scan native:lib 1\n');
  raw.variants = [{ name: 1, suffixes: ['.part.0', '.cold'] }];
  const p = decode(raw, 'cores', 1, 1);
  assert.deepEqual(p.variants[p.names.indexOf('scan')], ['.part.0', '.cold']);
  assert.deepEqual(cut(p, { focus: ['scan'], hide: [], fold: [] }).variants, p.variants);
  assert.deepEqual(decode(parse('all other: 0\n'), 'cores', 1, 1).variants, {});
});

test('values per process count a process for the time it was there', () => {
  const w = { from: 0, to: 100e3 };
  const n = processesIn({ labels: [label('process.pid', ['1', 0, 85e3], ['2', 50e3, 85e3])] }, w, 15e3);
  assert.equal(n, 1.5);
  assert.equal(processesIn({ labels: [] }, w, 15e3), 0);
  const p = perProcess(make(PYTHON, true), [2, 1]);
  assert.deepEqual([p.total[0], p.beforeTotal[0]], [78.5, 157]);
});
