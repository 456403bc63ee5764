#!/usr/bin/env node
// Speaks the API of docs/API.md with made-up data, for work on the page and its tests. tests/api holds it
// to docs/openapi.json, as it does the server.
// usage: server.mjs [--port 7790] [--scenario normal|empty] [--slow MS] [--services N]
import { createReadStream, existsSync } from 'node:fs';
import { createServer } from 'node:http';
import { dirname, extname, join, normalize } from 'node:path';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';
import { addBusyMachine } from './busy.mjs';
import { check, numberOf, Wrong } from './check.mjs';
import { everyOf, giantTree, makeServices, registry, residentKib, stacksOf, TYPES, typesOf } from './data.mjs';
import { fold } from './fold.mjs';
import { functionOf, sourceOf } from './function.mjs';
import { originColumns, variantColumn, variantsOf } from './origins.mjs';
import { overview } from './overview.mjs';

const flag = (name, otherwise) => {
  const i = process.argv.indexOf(`--${name}`);
  return i < 0 ? otherwise : process.argv[i + 1];
};
const port = Number(flag('port', 7790));
const empty = flag('scenario', 'normal') === 'empty';
const slow = Number(flag('slow', 0));
const started = Date.now();
const many = Number(flag('services', 0));
const services = empty ? new Map() : addBusyMachine(makeServices(started), started, many);
const machine = many ? { cpus: 32, memory_kib: 96 * 1048576 } : { cpus: 8, memory_kib: 16 * 1048576 };
const dist = join(dirname(fileURLToPath(import.meta.url)), '..', 'dist');
const STEP = 15e3;
const BYTES = TYPES.find((t) => t.type === 'go_oom:inuse_space:bytes');
let giant = null;

const DAYS = 86400e3;
const MAX_WINDOW = 40 * DAYS;
const MAX_POINTS = 10000;
const MAX_URL = 8192;

/* Numbers below that are seconds. */
const FIRST_MS = 1e11;

function at(text, otherwise) {
  if (text == null) return otherwise;
  if (text === 'now') return Date.now();
  const ago = /^(?:now)?-([\d.]+)(ns|us|ms|s|m|h|d)?$/.exec(text);
  if (ago) return Math.floor(Date.now() - Number(ago[1]) * { ns: 1e-6, us: 1e-3, ms: 1, s: 1e3, m: 60e3, h: 3600e3, d: DAYS }[ago[2] ?? 's']);
  const n = Number(text);
  const t = Number.isFinite(n) ? (n < FIRST_MS ? n * 1000 : n) : /^\d\d:/.test(text) ? today(text) : Date.parse(text.replace(' ', '+'));
  if (!Number.isFinite(t)) throw new Wrong(`'${text}' is not a time; use now, -1h, 2026-11-15T12:03:00Z, or milliseconds since 1970`);
  return t;
}

function today(text) {
  const [h, m, s = 0] = text.split(':').map(Number);
  const t = new Date().setHours(h, m, s, 0);
  return t > Date.now() ? t - DAYS : t;
}

function windowOf(q, prefix = '') {
  const to = at(q.get(`${prefix}to`), Date.now());
  const from = at(q.get(`${prefix}from`), Math.max(0, to - 3600e3));
  if (from >= to) throw new Wrong('the window ends before it starts; from must be earlier than to');
  if (to - from > MAX_WINDOW) throw new Wrong('the window is longer than 40 days; use a shorter one');
  return { from, to };
}

function stepOf(q, w) {
  const step = Number(q.get('step_ms') ?? Math.max(STEP, Math.ceil((w.to - w.from) / 300 / STEP) * STEP));
  if ((w.to - w.from) / step > MAX_POINTS) throw new Wrong(`the series would have more than ${MAX_POINTS} points; use a larger step_ms`);
  return step;
}

function serviceOf(q) {
  const service = services.get(q.get('service'));
  if (!service) throw new Wrong(`no stored profiles of service '${q.get('service')}'; see /api/services`, 404);
  return service;
}

function asked(q, name = q.get('type')) {
  const service = serviceOf(q);
  const type = typesOf(q.get('service'), service).find((t) => t.type === name);
  if (!type) throw new Wrong(`no stored profiles of service '${q.get('service')}' and type '${name}'; see /api/services`, 404);
  let share = 1;
  for (const l of q.getAll('label')) share *= l.startsWith('process.pid=') ? 1 / service.processes : 1;
  return { service, type, share };
}

/* The last process of a service that has several began a while ago, with a new version. */
const RESTART = Date.now() - 33 * 60e3;
function labelsOf(s) {
  const one = (value, first = s.start) => ({ value: String(value), first, last: Date.now() });
  const late = (i) => (i > 0 && i === s.processes - 1 ? Math.max(s.start, RESTART) : s.start);
  const build = (id, first) => ({ ...one(id.repeat(5), first), build_of: 'server' });
  const builds = s.processes > 1 ? [build('9c813489'), build('1b7e04d2', late(s.processes - 1))] : [build('9c813489')];
  return [
    { key: 'host.name', values: [one('web-1')] },
    { key: 'process.pid', values: Array.from({ length: s.processes }, (_, i) => one(2210 + i * 13, late(i))) },
    { key: 'k8s.namespace.name', values: [one('shop')] },
    { key: 'process.executable.name', values: [one('server')] },
    { key: 'process.executable.build_id.gnu', values: builds },
    { key: 'service.version', values: s.processes > 1 ? [one('1.4.0'), one('1.4.1', late(s.processes - 1))] : [one('1.4.0')] },
  ];
}

const lives = ({ start, end = Infinity }, w) => start < w.to && Math.min(end, Date.now()) > w.from;
const happened = (service, w) => (service.events ?? []).filter((e) => e.time >= w.from && e.time < w.to);

/** Sum (delta) or average (snapshot) of one stack over what of the window the service lived. */
function over(stack, type, w, { start, end = Infinity }) {
  const from = Math.max(w.from, start);
  const to = Math.min(w.to, end, Date.now());
  if (from >= to) return 0;
  const points = Math.min(60, Math.max(2, Math.ceil((to - from) / STEP)));
  let sum = 0;
  for (let i = 0; i < points; i++) sum += stack.at(from + ((i + 0.5) * (to - from)) / points);
  const mean = sum / points;
  return type.mode === 'delta' ? (mean * (to - from)) / 1000 : mean;
}

/* Nobody sampled for a while; later the samples of some intervals came together. */
const BEGAN = Date.now();
const GAP = { from: BEGAN - 25 * 60e3, to: BEGAN - 22 * 60e3 };
const LATE = { from: BEGAN - 12 * 60e3, to: BEGAN - 9 * 60e3 };
const isSampled = (type) => /^(off)?cpu:/.test(type.type);
/* What is stored of this type cannot be read everywhere. */
const isDamaged = (type) => type.type === 'go_heap:inuse_objects:count';
const within = (w, t) => t >= w.from && t < w.to;

function spread(type, w, step) {
  const n = Math.ceil((w.to - w.from) / step);
  return isSampled(type) ? Array.from({ length: n }, (_, i) => i).filter((i) => within(LATE, w.from + (i + 0.5) * step)) : [];
}

function points(service, type, w, step, share = 1, counts = () => true) {
  const out = [];
  const stacks = stacksOf(service, type).filter(counts);
  const every = everyOf(type);
  for (let t = w.from; t < w.to; t += step) {
    const mid = t + step / 2;
    if (mid < service.start || mid > Math.min(service.end ?? Infinity, Date.now())) out.push(null);
    else if (isSampled(type) && within(GAP, mid)) out.push(null);
    else if (every && Math.floor((t + step) / every) === Math.floor(t / every)) out.push(null);
    else if (type.type.startsWith('go_oom:') && !happened(service, { from: t, to: t + step }).length) out.push(null);
    else out.push(share * stacks.reduce((s, x) => s + x.at(mid), 0) * (type.mode === 'delta' ? step / 1000 : 1));
  }
  return out;
}

/* The midst of what of that time the service lived. */
const midOf = ({ start, end = Infinity }, from, to) => (Math.max(from, start) + Math.min(to, end)) / 2;

/* What the overview needs of the rest: nanoseconds and KiB of a service in a step; null where nothing was collected. */
const overviewData = {
  services, ...machine, typesOf,
  cpu(name, service, { from, to }) {
    const type = typesOf(name, service).find((t) => t.type === 'cpu:cpu:nanoseconds');
    const mid = midOf(service, from, to);
    if (!type || !lives(service, { from, to }) || within(GAP, mid)) return null;
    const ran = service.runs ? service.runs(from, to) : Math.min(to, service.end ?? Infinity) - Math.max(from, service.start);
    return ran && stacksOf(service, type).reduce((sum, x) => sum + x.at(mid), 0) * (ran / 1000);
  },
  memory(service, { from, to }) {
    const there = lives(service, { from, to }) && (!service.runs || service.runs(from, to) > 0);
    return there ? residentKib(service, midOf(service, from, to)) : null;
  },
};

function tree(service, type, w, before, share) {
  const root = { name: '', kids: new Map(), self: 0, total: 0, b: 0, bt: 0 };
  // A picture is of its moment: the average of those in the window.
  const moments = type.type.startsWith('go_oom:') ? happened(service, w) : null;
  for (const s of stacksOf(service, type)) {
    const v = moments ? moments.reduce((sum, e) => sum + s.at(e.time - 1) / moments.length, 0) : share * over(s, type, w, service);
    const b = before ? share * over(s, type, before, service) : 0;
    if (!v && !b) continue;
    let n = root;
    n.total += v;
    n.bt += b;
    for (const f of s.frames) {
      if (!n.kids.has(f)) n.kids.set(f, { name: f, kids: new Map(), self: 0, total: 0, b: 0, bt: 0 });
      n = n.kids.get(f);
      n.total += v;
      n.bt += b;
    }
    n.self += v;
    n.b += b;
  }
  return root;
}

/* The programs' own sources are there; those of the libraries were built elsewhere. */
function fileOf(name) {
  const [dir, last] = [name.split('/').slice(0, -1), name.split('/').pop().split('.')[0]];
  return name && `${dir[0] === 'example.com' ? `/src/${dir.join('/')}/${last}/` : ''}${last}.go`;
}

function columns(root, before) {
  const out = { names: [], files: [], name: [], depth: [], self: [], total_of: [], before_self: [], before_total_of: [] };
  const ids = new Map();
  const visit = (n, d) => {
    if (!ids.has(n.name)) {
      ids.set(n.name, out.names.length);
      out.names.push(n.name);
      out.files.push(fileOf(n.name));
    }
    out.name.push(ids.get(n.name));
    out.depth.push(d);
    out.self.push(n.self);
    out.total_of.push(n.total);
    out.before_self.push(n.b);
    out.before_total_of.push(n.bt);
    for (const k of [...n.kids.values()].sort((a, b) => b.total + b.bt - a.total - a.bt)) visit(k, d + 1);
  };
  visit(root, 0);
  if (!before) {
    delete out.before_self;
    delete out.before_total_of;
  }
  return out;
}

function giantFlame(service, type, w, before) {
  giant ??= giantTree(200000);
  const scale = (x) => over(stacksOf(service, type)[0], type, x, service) / giant.total[0];
  const of = (a, k) => a.map((v) => Math.round(v * k));
  const out = { names: giant.names, files: giant.names.map(() => ''), name: giant.name, depth: giant.depth };
  out.self = of(giant.self, scale(w));
  out.total_of = of(giant.total, scale(w));
  if (before) {
    out.before_self = of(giant.self, scale(before));
    out.before_total_of = of(giant.total, scale(before));
  }
  return out;
}

/* Processes take equal parts; of all other labels there is one value, or none. */
function grouped(c, key, service) {
  const one = labelsOf(service).find((l) => l.key === key)?.values.map((v) => v.value) ?? [];
  const values = one.length ? one.map((v) => `${key}=${v}`) : [`${key}=(other)`];
  const out = { ...c, names: [...c.names, ...values], files: [...c.files, ...values.map(() => '')], name: [c.name[0]], depth: [0] };
  const numbers = ['self', 'total_of', 'before_self', 'before_total_of'].filter((k) => c[k]);
  for (const k of numbers) out[k] = [c[k][0]];
  values.forEach((_, v) => c.name.forEach((n, i) => {
    out.name.push(i ? n : c.names.length + v);
    out.depth.push(c.depth[i] + 1);
    for (const k of numbers) out[k].push(c[k][i] / values.length);
  }));
  return out;
}

function profile(q) {
  const { service, type, share } = asked(q);
  const w = windowOf(q);
  const before = q.has('before_from') ? windowOf(q, 'before_') : null;
  const whole = service.giant ? giantFlame(service, type, w, before) : columns(tree(service, type, w, before, share), before);
  const c = q.has('group') ? grouped(whole, q.get('group'), service) : whole;
  const kind = { unit: type.type.split(':')[2], mode: type.mode };
  const totals = { total: c.total_of[0], ...(before ? { before_total: c.before_total_of[0] } : {}) };
  return { w, before, kind, totals, c, collections: lives(service, w) ? Math.round((w.to - w.from) / STEP) : 0 };
}

function flame(q) {
  const { w, kind, totals, c, collections } = profile(q);
  const { columns: kept, folded } = fold(c, numberOf('/api/flame', q, 'max_nodes'));
  return { ...kind, ...w, ...totals, folded, collections, other: 0, ...kept, ...variantColumn(kept.names), ...originColumns(kept.names, q.get('group')) };
}

function top(q) {
  const { before, kind, totals, c } = profile(q);
  const rows = new Map();
  const path = [];
  c.name.forEach((n, i) => {
    path.length = c.depth[i];
    const row = rows.get(n) ?? { name: c.names[n], file: c.files[n], ...variantsOf(c.names[n]), self: 0, total: 0, before_self: 0, before_total: 0 };
    row.self += c.self[i];
    row.before_self += c.before_self?.[i] ?? 0;
    // A function that calls itself counts once.
    if (!path.includes(n)) {
      row.total += c.total_of[i];
      row.before_total += c.before_total_of?.[i] ?? 0;
    }
    path.push(n);
    if (i > 0) rows.set(n, row);
  });
  const list = [...rows.values()].sort((a, b) => (before ? Math.abs(b.self - b.before_self) - Math.abs(a.self - a.before_self) : b.self - a.self));
  if (!before) for (const r of list) delete r.before_self, delete r.before_total;
  return { ...kind, ...totals, functions: list.length, rows: list.slice(0, numberOf('/api/top', q, 'limit')) };
}

function oneFunction(q) {
  const { w, before, kind, c } = profile(q);
  return { ...kind, ...w, ...functionOf(c, q.get('name'), before, numberOf('/api/function', q, 'limit')) };
}

function functionSource(q) {
  const { before, c } = profile(q);
  const f = functionOf(c, q.get('name'), before, numberOf('/api/function/source', q, 'limit'));
  return { file: q.get('file'), ...sourceOf(f, q.get('file'), started - 3600e3) };
}

function functionSeries(q) {
  const { service, type, share } = asked(q);
  const w = windowOf(q);
  const step = stepOf(q, w);
  const name = q.get('name');
  if (type.type.startsWith('go_runtime:')) throw new Wrong(`'${type.type}' has no stacks; use /api/series`);
  // What is not made of stacks has the same share of each step.
  const f = service.giant && functionOf(profile(q).c, name, false, 1);
  const part = (key, counts) => points(service, type, w, step, f ? (share * f[key]) / (f.window_total || 1) : share, f ? undefined : counts);
  return {
    ...w, step_ms: step, unit: type.type.split(':')[2], mode: type.mode,
    self: part('self', (s) => s.frames.at(-1) === name), total: part('total', (s) => s.frames.includes(name)),
    spread: spread(type, w, step), ...(isDamaged(type) && { damaged: 2 }),
  };
}

/* A machine where everything works; two features are not enabled. */
const FEATURES = [
  ['cpu', 'CPU profiles'], ['off-cpu', 'Off-CPU profiles', 'start sonde run with --offcpu 1ms'],
  ['kernel-names', 'Kernel function names'], ['python', 'Python function names'], ['go', 'Go profiles'],
  ['java', 'Java profiles', 'start sonde run with --java'], ['java-counters', 'JVM counters'],
  ['oom-kills', 'OOM kill snapshots'], ['oom-limits', 'Memory limit watch'],
  ['host-pids', 'Host processes'], ['store', 'Profile store'],
].map(([feature, title, ask]) => ({
  feature, title, state: ask ? 'off' : 'on', cause: ask ? 'disabled' : null, reason: ask ? 'not enabled' : null, remedy: ask ?? null,
}));

function health() {
  return {
    version: '0.1.0', started, now: Date.now(), interval_ms: STEP, uptime_ms: Date.now() - started, cpu_ms: 412, cpu_percent: 0.21,
    rss_bytes: 20342374, intervals: 240, lag_ms: 3, targets: empty ? 14 : 61, profiled: empty ? 0 : 9, collections: 2160,
    failures: 0, hung_reads: 0, unanswered_reads: 0, lost_records: 0, write_failures: 0, oom_kills: 2, oom_late: 1, oom_lost: 0, oom_trouble: null, cpu_samples: 71280, cpu_samples_lost: 0, cpu_stacks_cut: 12, trouble: null,
    store: { bytes: 33135001, days: 2, oldest: started - 26 * 3600e3, samples: 4812345, profiles: 8640, profiles_lost: 0, damaged_files: 0, damaged_blocks: 0, corrected_pages: 0, damage: null, over_budget: 0, budget: null, clock_ahead_ms: 0, writing: true, trouble: null },
    sinks: [{ sink: 'store', written: 17280, dropped: 0, failures: 0, queued: 12, queued_bytes: 48211, spooled: 0, spooled_bytes: 0, spool_lost: 0, lag_ms: 310, trouble: null }],
    features: FEATURES,
  };
}

function targets(q) {
  const no = (cause, reason, remedy) => [{ reader: 'go-heap', family: 'go_heap', available: false, cause, reason, remedy, collections: 0, failures: 0, last: null, cost_us: 0, slow: false, trouble: null }];
  const target = (pid, comm, readers) => ({ pid, start_ticks: 1, comm, exe: `/usr/bin/${comm}`, command: `/usr/bin/${comm} --listen 127.0.0.1:8080 --token ***`, service: comm, container: null, pod: null, unit: null, runtime: null, readers });
  const out = ['systemd', 'dbus-daemon', 'sshd', 'cron', 'bash', 'postgres', 'postgres', 'nginx', 'nginx', 'python3', 'redis-server', 'agetty', 'udevd', 'journald']
    .map((c, i) => target(100 + i * 37, c, no('not_go', 'not a Go program', null)));
  out.push(target(4711, 'dockerd', no('denied', 'not enough permissions', 'run sonde as root')));
  out.push(target(4790, 'containerd', no('denied', 'not enough permissions', 'run sonde as root')));
  out.push(target(5120, 'restic', no('profiling_off', 'memory profiling is off in this process', 'start sonde run with --go-heap force')));
  const reader = (name, available, cause, reason, remedy) => ({ reader: name, family: name.replace('-', '_'), available, cause, reason, remedy, collections: 240, failures: 0, last: Date.now(), cost_us: 80, slow: false, trouble: null });
  out.push(target(2210, 'gateway', [
    reader('go-heap', true, null, null, null),
    reader('go-block', false, 'profiling_off', 'block profiling is off in this process', 'call runtime.SetBlockProfileRate(10000) in the program, or run sonde block 2210 --force-block 10000'),
    reader('go-mutex', true, null, null, null),
    reader('java-alloc', false, 'not_java', 'not a Java program', null),
    reader('cpu', true, null, null, null),
  ]));
  const asked = out.filter((t) => !q.has('service') || t.service === q.get('service'));
  return { targets: empty ? asked.slice(0, 14) : asked };
}

/* The metrics of a Go process in this mock: of a type, or a part of one by an attribute. */
const METRICS = [
  { metric: 'go.gc.cycles', kind: 'counter', unit: 'count', type: 'go_runtime:gc_cycles:count' },
  { metric: 'go.gc.pauses', kind: 'histogram', unit: 'seconds', type: 'go_runtime:gc_cycles:count', bounds: [1e-4, 1e-3, 1e-2], shares: [0.6, 0.3, 0.09, 0.01] },
  { metric: 'go.goroutines', kind: 'gauge', unit: 'count', type: 'go_runtime:goroutines:count', key: 'state', shares: { running: 0.1, waiting: 0.9 } },
  { metric: 'go.heap.live', kind: 'gauge', unit: 'bytes', type: 'go_runtime:heap_live:bytes' },
  { metric: 'go.memory.gc.cpu.fraction', kind: 'gauge', unit: 'ppm', type: 'go_runtime:gc_cpu_fraction:ppm' },
  { metric: 'go.processor.limit', kind: 'gauge', unit: 'count', type: 'go_runtime:gomaxprocs:count' },
];

/** The series of a metric: one per process and value of its attribute. */
function seriesOf(m, service) {
  const out = [];
  for (let i = 0; i < service.processes; i++)
    for (const [value, share] of Object.entries(m.key ? m.shares : { '': 1 }))
      out.push({ share: share / service.processes, labels: [...(m.key ? [{ key: m.key, value }] : []), { key: 'host.name', value: 'web-1' }, { key: 'process.pid', value: String(2210 + i * 13) }] });
  return out;
}

function storedMetrics(q) {
  const service = serviceOf(q);
  const w = windowOf(q);
  const stored = METRICS.filter((m) => typesOf(q.get('service'), service).some((t) => t.type === m.type));
  if (!q.has('metric')) {
    const list = lives(service, w) ? stored : [];
    return { ...w, metrics: list.map((m) => ({
      metric: m.metric, kind: m.kind, unit: m.unit, series: seriesOf(m, service).length, first: Math.max(service.start, w.from), last: Math.min(w.to, Date.now()),
      attributes: m.key ? [{ key: m.key, values: Object.keys(m.shares) }] : [],
    })) };
  }
  const m = stored.find((x) => x.metric === q.get('metric'));
  if (!m) throw new Wrong(`service '${q.get('service')}' has no stored metric '${q.get('metric')}'; for a list, request /api/metrics without metric`, 404);
  const step = stepOf(q, w);
  const type = TYPES.find((t) => t.type === m.type);
  const filters = q.getAll('label').map((l) => [l.slice(0, l.indexOf('=')), l.slice(l.indexOf('=') + 1)]);
  const groups = q.getAll('group');
  const curves = new Map();
  for (const s of lives(service, w) ? seriesOf(m, service) : []) {
    if (!filters.every(([k, v]) => s.labels.some((l) => l.key === k && l.value === v))) continue;
    const labels = groups.includes('*') ? s.labels : s.labels.filter((l) => groups.includes(l.key));
    const known = curves.get(JSON.stringify(labels)) ?? { labels, share: 0 };
    known.share += s.share;
    curves.set(JSON.stringify(labels), known);
  }
  const histogram = m.kind === 'histogram';
  return {
    ...w, step_ms: step, metric: m.metric, kind: m.kind, unit: m.unit,
    aggregate: m.kind === 'gauge' ? q.get('aggregate') ?? 'average' : 'sum', bounds: m.bounds ?? null,
    series: [...curves.values()].map(({ labels, share }) => {
      const row = (k) => points(service, type, w, step, share * k);
      return { labels, points: histogram ? null : row(1), buckets: histogram ? m.shares.map(row) : null, sums: histogram ? row(0.001) : null };
    }),
  };
}

const handlers = {
  '/api/metrics': storedMetrics,
  '/api/health': health,
  '/api/targets': targets,
  '/api/types': () => registry,
  '/api/overview': (q) => overview(q, windowOf(q), overviewData),
  '/api/services': (q) => {
    const w = windowOf(q);
    const step = Math.max(STEP, Math.ceil((w.to - w.from) / numberOf('/api/services', q, 'points')));
    const wanted = ([name, s]) => lives(s, w) && (!q.has('service') || q.get('service') === name);
    const kinds = q.getAll('type');
    const asks = (t) => !kinds.length || kinds.some((k) => k === t.type || k === `*${t.type.slice(t.type.indexOf(':'))}`);
    const there = (t, s) => !t.type.startsWith('go_oom:') || happened(s, w).length > 0;
    const list = [...services].filter(wanted).map(([service, s]) => ({
      service, processes: s.processes,
      types: typesOf(service, s).filter((t) => asks(t) && there(t, s)).map((t) => ({
        ...t, first: s.start, last: Math.min(s.end ?? Infinity, Date.now()), series: points(s, t, w, step),
        value: stacksOf(s, t).reduce((sum, x) => sum + over(x, t, w, s), 0),
      })),
    }));
    return { ...w, step_ms: step, services: list };
  },
  '/api/events': (q) => {
    const w = windowOf(q);
    const list = [...services].filter(([name]) => !q.has('service') || q.get('service') === name)
      .flatMap(([service, s]) => happened(s, w).map((e) => {
        const whole = stacksOf(s, BYTES).map((x) => ({ name: x.frames.at(-1), self: x.at(e.time - 1) })).sort((a, b) => b.self - a.self);
        const inuse = whole.reduce((sum, x) => sum + x.self, 0);
        return { ...e, service, executable: service, container: null, inuse_bytes: inuse, top: { ...whole[0], file: 'main.go', share: whole[0].self / inuse } };
      }));
    return { ...w, count: list.length, events: list.sort((a, b) => b.time - a.time) };
  },
  '/api/labels': (q) => {
    const s = serviceOf(q);
    const w = windowOf(q);
    if (!lives(s, w)) return { labels: [] };
    const inside = (v) => ({ ...v, first: Math.max(v.first, w.from), last: Math.min(v.last, w.to) });
    return { labels: labelsOf(s).map((l) => ({ ...l, values: l.values.filter((v) => v.first < w.to && v.last > w.from).map(inside) })) };
  },
  '/api/series': (q) => {
    const w = windowOf(q);
    const step = stepOf(q, w);
    const one = (name) => {
      const { service, type, share } = asked(q, name);
      return { unit: type.type.split(':')[2], mode: type.mode, points: points(service, type, w, step, share), spread: spread(type, w, step), ...(isDamaged(type) && { damaged: 2 }) };
    };
    const names = q.getAll('type');
    if (names.length < 2) return { ...w, step_ms: step, ...one(names[0]) };
    const known = typesOf(q.get('service'), serviceOf(q)).map((t) => t.type);
    const found = names.filter((n) => known.includes(n));
    return { ...w, step_ms: step, series: (found.length ? found : names.slice(0, 1)).map((n) => ({ type: n, ...one(n) })) };
  },
  '/api/flame': flame,
  '/api/top': top,
  '/api/function': oneFunction,
  '/api/function/series': functionSeries,
  '/api/function/source': functionSource,
};

/* A profile without samples, in the form of pprof. */
const PPROF = gzipSync(Buffer.from([0x32, 0]));

function metrics() {
  const values = { sonde_targets: health().targets, sonde_store_writing: 1 };
  return registry.metrics.filter((m) => m.prometheus).map(({ prometheus: name, kind, help }) =>
    `# HELP ${name} ${help}\n# TYPE ${name} ${kind}\n${name in values ? `${name} ${values[name]}\n` : ''}`).join('');
}

/* What is no JSON. */
const files = {
  '/api/pprof': (q) => {
    profile(q);
    const name = `${q.get('service')}-${q.get('type').split(':')[1]}.pb.gz`.replace(/[^\w.-]/g, '_');
    return [PPROF, { 'Content-Type': 'application/octet-stream', 'Content-Disposition': `attachment; filename="${name}"` }];
  },
  '/metrics': () => [metrics(), { 'Content-Type': 'text/plain; version=0.0.4; charset=utf-8' }],
};

const MIME = { '.html': 'text/html; charset=utf-8', '.js': 'text/javascript; charset=utf-8', '.css': 'text/css; charset=utf-8', '.svg': 'image/svg+xml' };
const CSP = "default-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; object-src 'none'";

function answer(req, res) {
  const u = new URL(req.url, 'http://127.0.0.1');
  const send = (status, body, headers) => {
    res.writeHead(status, { 'Cache-Control': 'no-store', ...headers });
    res.end(body);
  };
  const json = (status, body, headers) => send(status, JSON.stringify(body), { 'Content-Type': 'application/json', ...headers });
  if (req.url.length > MAX_URL) return json(414, { error: 'the URL is too long; use fewer or shorter parameters' });
  if (req.method !== 'GET' && req.method !== 'HEAD') return json(405, { error: 'only GET and HEAD are allowed' }, { Allow: 'GET, HEAD' });
  if (u.pathname.startsWith('/api/') || files[u.pathname]) {
    try {
      check(u.pathname, u.searchParams);
      if (files[u.pathname]) return send(200, ...files[u.pathname](u.searchParams));
      const body = handlers[u.pathname](u.searchParams);
      const packed = u.pathname === '/api/overview' && /\bgzip\b/.test(req.headers['accept-encoding'] ?? '');
      if (packed) return send(200, gzipSync(JSON.stringify(body)), { 'Content-Type': 'application/json', 'Content-Encoding': 'gzip' });
      return json(200, body);
    } catch (e) {
      return json(e.status ?? 500, { error: e.message });
    }
  }
  const file = join(dist, normalize(u.pathname === '/' ? '/index.html' : u.pathname));
  if (!file.startsWith(dist) || !existsSync(file)) return json(404, { error: 'no such file' });
  res.writeHead(200, { 'Content-Type': MIME[extname(file)] ?? 'application/octet-stream', 'Content-Security-Policy': CSP });
  createReadStream(file).pipe(res);
}

createServer((req, res) => (slow && req.url.startsWith('/api/') ? setTimeout(() => answer(req, res), slow) : answer(req, res)))
  .listen(port, '127.0.0.1', function () {
    console.log(`mock: http://127.0.0.1:${this.address().port}`);
  });
