#!/usr/bin/env node
// Speaks the API of docs/API.md with made-up data, for work on the page and its tests.
// usage: server.mjs [--port 7790] [--scenario normal|empty] [--slow MS]
import { createReadStream, existsSync } from 'node:fs';
import { createServer } from 'node:http';
import { dirname, extname, join, normalize } from 'node:path';
import { fileURLToPath } from 'node:url';
import { everyOf, giantTree, makeServices, stacksOf, TYPES, typesOf } from './data.mjs';

const flag = (name, otherwise) => {
  const i = process.argv.indexOf(`--${name}`);
  return i < 0 ? otherwise : process.argv[i + 1];
};
const port = Number(flag('port', 7790));
const empty = flag('scenario', 'normal') === 'empty';
const slow = Number(flag('slow', 0));
const started = Date.now();
const services = empty ? new Map() : makeServices(started);
const dist = join(dirname(fileURLToPath(import.meta.url)), '..', 'dist');
const STEP = 15e3;
const BYTES = TYPES.find((t) => t.type === 'go_oom:inuse_space:bytes');
let giant = null;

class Wrong extends Error {
  constructor(message, status = 400) {
    super(message);
    this.status = status;
  }
}

function at(text, otherwise) {
  if (text == null) return otherwise;
  if (text === 'now') return Date.now();
  const m = /^-(\d+)([smhd])$/.exec(text);
  if (m) return Date.now() - Number(m[1]) * { s: 1e3, m: 60e3, h: 3600e3, d: 86400e3 }[m[2]];
  const n = Number(text);
  if (!Number.isFinite(n)) throw new Wrong(`'${text}' is not a time; use milliseconds, now, or -1h`);
  return n;
}

function windowOf(q, prefix = '') {
  const to = at(q.get(`${prefix}to`), Date.now());
  const from = at(q.get(`${prefix}from`), to - 3600e3);
  if (from >= to) throw new Wrong('the window is empty: from must be before to');
  return { from, to };
}

function serviceOf(q) {
  const service = services.get(q.get('service'));
  if (!service) throw new Wrong(`there is no service '${q.get('service')}'; see /api/services`, 404);
  return service;
}

function asked(q, name = q.get('type')) {
  const service = serviceOf(q);
  const type = typesOf(q.get('service'), service).find((t) => t.type === name);
  if (!type) throw new Wrong(`nothing is stored of service '${q.get('service')}' and type '${name}'; see /api/services`, 404);
  let share = 1;
  for (const l of q.getAll('label')) share *= l.startsWith('process.pid=') ? 1 / service.processes : 1;
  return { service, type, share };
}

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

function points(service, type, w, step, share = 1) {
  const out = [];
  const stacks = stacksOf(service, type);
  const every = everyOf(type);
  for (let t = w.from; t < w.to; t += step) {
    const mid = t + step / 2;
    if (mid < service.start || mid > Math.min(service.end ?? Infinity, Date.now())) out.push(null);
    else if (every && Math.floor((t + step) / every) === Math.floor(t / every)) out.push(null);
    else if (type.type.startsWith('go_oom:') && !happened(service, { from: t, to: t + step }).length) out.push(null);
    else out.push(share * stacks.reduce((s, x) => s + x.at(mid), 0) * (type.mode === 'delta' ? step / 1000 : 1));
  }
  return out;
}

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

function columns(root, before) {
  const out = { names: [], files: [], name: [], depth: [], self: [], total_of: [], before_self: [], before_total_of: [] };
  const ids = new Map();
  const visit = (n, d) => {
    if (!ids.has(n.name)) {
      ids.set(n.name, out.names.length);
      out.names.push(n.name);
      out.files.push(n.name ? `${n.name.split('/').pop().split('.')[0]}.go` : '');
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

function flame(q) {
  const { service, type, share } = asked(q);
  const w = windowOf(q);
  const before = q.has('before_from') ? windowOf(q, 'before_') : null;
  const c = service.giant ? giantFlame(service, type, w, before) : columns(tree(service, type, w, before, share), before);
  return {
    unit: type.type.split(':')[2], mode: type.mode, ...w, total: c.total_of[0],
    ...(before ? { before_total: c.before_total_of[0] } : {}),
    folded: 0, collections: Math.round((w.to - w.from) / STEP), other: 0, ...c,
  };
}

/* A machine where all works; nobody asked for two of them. */
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
    rss_bytes: 19.4 * 1048576, intervals: 240, lag_ms: 3, targets: empty ? 14 : 61, profiled: empty ? 0 : 9, collections: 2160,
    failures: 0, lost_records: 0, write_failures: 0, oom_kills: 2, oom_late: 1, oom_lost: 0, oom_trouble: null, cpu_samples: 71280, cpu_samples_lost: 0, cpu_stacks_cut: 12, trouble: null,
    store: { bytes: 31.6 * 1048576, days: 2, oldest: started - 26 * 3600e3, samples: 4812345, profiles: 8640, profiles_lost: 0, damaged_files: 0, writing: true, trouble: null },
    features: FEATURES,
  };
}

function targets() {
  const no = (reason, remedy) => [{ reader: 'go_heap', available: false, reason, remedy, collections: 0, failures: 0, last: null, cost_us: 0, slow: false, trouble: null }];
  const target = (pid, comm, readers) => ({ pid, start_ticks: 1, comm, exe: `/usr/bin/${comm}`, service: comm, container: null, pod: null, unit: null, runtime: null, readers });
  const out = ['systemd', 'dbus-daemon', 'sshd', 'cron', 'bash', 'postgres', 'postgres', 'nginx', 'nginx', 'python3', 'redis-server', 'agetty', 'udevd', 'journald']
    .map((c, i) => target(100 + i * 37, c, no('Not a Go program.', null)));
  out.push(target(4711, 'dockerd', no('The memory of this process cannot be read: it belongs to root.', 'Run sonde as root, or with CAP_SYS_PTRACE and CAP_PERFMON.')));
  out.push(target(4790, 'containerd', no('The memory of this process cannot be read: it belongs to root.', 'Run sonde as root, or with CAP_SYS_PTRACE and CAP_PERFMON.')));
  out.push(target(5120, 'restic', no('Heap profiling is off in this program: it never calls runtime.MemProfile.', 'Start sonde with --go-heap force to switch it on from outside.')));
  const reader = (name, available, reason, remedy) => ({ reader: name, available, reason, remedy, collections: 240, failures: 0, last: Date.now(), cost_us: 80, slow: false, trouble: null });
  out.push(target(2210, 'gateway', [
    reader('go-heap', true, null, null),
    reader('go-block', false, 'the program has not turned its block profile on', 'call runtime.SetBlockProfileRate in it'),
    reader('go-mutex', true, null, null),
  ]));
  return { targets: empty ? out.slice(0, 14) : out };
}

const handlers = {
  '/api/health': health,
  '/api/targets': targets,
  '/api/services': (q) => {
    const w = windowOf(q);
    const n = Math.min(500, Number(q.get('points') ?? 60));
    const step = (w.to - w.from) / n;
    const wanted = ([name, s]) => s.start < w.to && (!q.has('service') || q.get('service') === name);
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
    const s = services.get(q.get('service'));
    if (!s) throw new Wrong('there is no such service', 404);
    const one = (value) => ({ value: String(value), first: s.start, last: Date.now() });
    return { labels: [
      { key: 'host.name', values: [one('web-1')] },
      { key: 'process.pid', values: Array.from({ length: s.processes }, (_, i) => one(2210 + i * 13)) },
      { key: 'k8s.namespace.name', values: [one('shop')] },
    ] };
  },
  '/api/series': (q) => {
    const w = windowOf(q);
    const step = Math.max(STEP, Math.ceil((w.to - w.from) / 300 / STEP) * STEP);
    const one = (name) => {
      const { service, type, share } = asked(q, name);
      return { unit: type.type.split(':')[2], mode: type.mode, points: points(service, type, w, step, share) };
    };
    const names = q.getAll('type');
    if (names.length < 2) return { ...w, step_ms: step, ...one(names[0]) };
    const known = typesOf(q.get('service'), serviceOf(q)).map((t) => t.type);
    return { ...w, step_ms: step, series: names.filter((n) => known.includes(n)).map((n) => ({ type: n, ...one(n) })) };
  },
  '/api/flame': flame,
};

const MIME = { '.html': 'text/html; charset=utf-8', '.js': 'text/javascript; charset=utf-8', '.css': 'text/css; charset=utf-8', '.svg': 'image/svg+xml' };
const CSP = "default-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; object-src 'none'";

function answer(req, res) {
  const u = new URL(req.url, 'http://127.0.0.1');
  const json = (status, body) => {
    res.writeHead(status, { 'Content-Type': 'application/json; charset=utf-8', 'Cache-Control': 'no-store' });
    res.end(JSON.stringify(body));
  };
  if (u.pathname === '/api/pprof') {
    res.writeHead(200, { 'Content-Type': 'application/octet-stream', 'Content-Disposition': 'attachment; filename="checkout.pb.gz"' });
    return res.end(Buffer.from([0x1f, 0x8b]));
  }
  if (u.pathname.startsWith('/api/')) {
    const handler = handlers[u.pathname];
    if (!handler) return json(404, { error: `there is nothing at ${u.pathname}; see docs/API.md` });
    try {
      return json(200, handler(u.searchParams));
    } catch (e) {
      return json(e.status ?? 500, { error: e.message });
    }
  }
  const file = join(dist, normalize(u.pathname === '/' ? '/index.html' : u.pathname));
  if (!file.startsWith(dist) || !existsSync(file)) return json(404, { error: 'no such page' });
  res.writeHead(200, { 'Content-Type': MIME[extname(file)] ?? 'application/octet-stream', 'Content-Security-Policy': CSP });
  createReadStream(file).pipe(res);
}

createServer((req, res) => (slow && req.url.startsWith('/api/') ? setTimeout(() => answer(req, res), slow) : answer(req, res)))
  .listen(port, '127.0.0.1', function () {
    console.log(`mock: http://127.0.0.1:${this.address().port}`);
  });
