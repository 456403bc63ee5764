// Made-up services with known truth: stacks whose weight is a function of time. `checkout` leaks from
// one function, since 24 minutes before the server was started, goroutines as well; `importer` was killed
// for want of memory, twice; `billing` is near its limit; `giant` has 200,000 nodes.

import { readFileSync } from 'node:fs';

const MB = 1048576;
export const LEAK_FUNCTION = 'example.com/checkout/cart.(*sessionCache).remember';
export const LEAK_AGE_MS = 24 * 60e3;

export function random(seed) {
  let s = seed >>> 0;
  return () => {
    s = (s + 0x6d2b79f5) >>> 0;
    let t = Math.imul(s ^ (s >>> 15), 1 | s);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
}

const http = ['net/http.(*Server).Serve.func3', 'net/http.(*conn).serve', 'net/http.serverHandler.ServeHTTP', 'net/http.HandlerFunc.ServeHTTP'];
const wave = (period, phase = 0) => (t) => 1 + 0.18 * Math.sin((2 * Math.PI * t) / period + phase);
const jitter = (t, k) => 1 + 0.05 * Math.sin(t / 17e3 + k * 7) + 0.03 * Math.sin(t / 5e3 + k);

function app(mod, start, extra = []) {
  const m = `example.com/${mod}`;
  const stacks = [
    [[...http, `${m}/api.(*Handler).List`, `${m}/store.(*DB).Query`, 'database/sql.(*Rows).Scan', 'database/sql.convertAssignRows', 'strconv.FormatInt'], 6, 9],
    [[...http, `${m}/api.(*Handler).List`, 'encoding/json.(*Encoder).Encode', 'encoding/json.(*encodeState).marshal', 'encoding/json.structEncoder.encode', 'bytes.(*Buffer).grow'], 3, 22],
    [[...http, `${m}/api.(*Handler).Get`, `${m}/store.(*DB).Lookup`, `${m}/store.(*page).decode`, 'github.com/klauspost/compress/zstd.(*Decoder).DecodeAll'], 14, 11],
    [[...http, `${m}/api.(*Handler).Get`, 'encoding/json.(*Encoder).Encode', 'encoding/json.(*encodeState).marshal', 'encoding/json.mapEncoder.encode', 'reflect.copyVal'], 2, 7],
    [[...http, `${m}/api.(*Handler).Put`, 'encoding/json.(*Decoder).Decode', 'encoding/json.(*decodeState).object', 'encoding/json.(*decodeState).literalStore', 'reflect.unsafe_New'], 4, 12],
    [[...http, `${m}/api.(*Handler).Put`, `${m}/store.(*DB).Write`, `${m}/store.(*wal).append`, 'bufio.NewWriterSize'], 8, 3],
    [['net/http.(*Server).Serve.func3', 'net/http.(*conn).serve', 'net/http.(*conn).readRequest', 'net/textproto.(*Reader).ReadMIMEHeader'], 1.5, 6],
    [['net/http.(*Server).Serve.func3', 'net/http.(*conn).serve', 'net/http.newBufioReader', 'bufio.NewReaderSize'], 2.5, 1],
    [['runtime.main', 'main.main', `${m}/store.Open`, `${m}/store.(*index).load`, 'runtime.makemap'], 21, 0.1],
    [['runtime.main', 'main.main', `${m}/metrics.Register`, 'github.com/prometheus/client_golang/prometheus.NewRegistry'], 1.2, 0.05],
    [[`${m}/worker.(*Pool).run`, `${m}/worker.(*Pool).run.func1`, `${m}/worker.walk`, `${m}/worker.walk`, `${m}/worker.walk`, 'strings.(*Builder).grow'], 2, 8],
    [[`${m}/worker.(*Pool).run`, `${m}/worker.(*Pool).run.func1`, `${m}/worker.render`, 'text/template.(*Template).Execute', 'text/template.(*state).walk', 'fmt.Fprint', 'fmt.(*buffer).writeString'], 1, 14],
  ].map(([frames, live, rate], k) => ({
    frames,
    live: (t) => live * MB * wave(41 * 60e3, k)(t) * jitter(t, k),
    rate: (t) => rate * MB * wave(13 * 60e3, k)(t) * jitter(t, k),
  }));
  return { start, stacks: [...stacks, ...extra], processes: 1 };
}

/* Goroutines by stack and state; those of a leak wait, and only grow. */
function goroutines(mod, k, leaked = () => 0) {
  const m = `example.com/${mod}`;
  const serve = ['net/http.(*Server).Serve.func3', 'net/http.(*conn).serve'];
  return [
    ['waiting', [...serve, 'net/http.(*conn).readRequest', 'bufio.(*Reader).Peek', 'net.(*conn).Read', 'internal/poll.(*FD).Read', 'runtime.gopark'], 240],
    ['waiting', [`${m}/worker.(*Pool).run`, `${m}/worker.(*Pool).next`, 'runtime.chanrecv1', 'runtime.gopark'], 64],
    ['waiting', ['database/sql.OpenDB.func1', 'database/sql.(*DB).connectionOpener', 'runtime.selectgo', 'runtime.gopark'], 1],
    ['runnable', [...serve, 'net/http.serverHandler.ServeHTTP', `${m}/api.(*Handler).List`], 5],
    ['running', [...serve, 'net/http.serverHandler.ServeHTTP', `${m}/api.(*Handler).Get`], 3],
    ['syscall', [...serve, `${m}/store.(*wal).append`, 'os.(*File).Write', 'syscall.write'], 4],
  ].map(([state, frames, n], i) => ({ state, frames, count: (t) => n * k * jitter(t, i) }))
    .concat({ state: 'waiting', frames: [`${m}/cart.watch`, `${m}/cart.(*watcher).wait`, 'runtime.chanrecv1', 'runtime.gopark'], count: leaked });
}

/* Fills up until it is killed; then it is started again. */
const CACHE = {
  frames: ['runtime.main', 'main.main', 'main.run', 'main.load', 'main.appendToCache'],
  full: 1.79 * 1024 * MB,
};

function importer(now) {
  const life = 19 * 60e3;
  const kills = [now - 37 * 60e3, now - 18 * 60e3];
  const start = kills[0] - life;
  const filled = (t) => (t > kills[1] ? 0 : CACHE.full * (0.02 + 0.98 * (((t - start) % life) || life) / life));
  const service = app('importer', start, [{ frames: CACHE.frames, live: filled, rate: () => CACHE.full / (life / 1000) }]);
  const event = (kind, time, pid, rss, picture) => ({ kind, time, pid, rss_bytes: rss && Math.round(rss), picture });
  return {
    ...service, end: kills[1], processes: 2,
    events: [
      event('oom_kill', kills[1], 5022, 1.9 * 1024 * MB, 'kill'),
      event('oom_near', kills[1] - 70e3, 5022, null, null),
      event('oom_kill', kills[0], 4711, null, 'earlier'),
    ],
  };
}

/* Python beside C and the kernel: what runs below the interpreter's loop, and what calls back. */
function ranker(start) {
  const entry = ['_start', '__libc_start_main', 'Py_BytesMain', 'Py_RunMain', 'pymain_run_python', '_PyRun_SimpleFileObject', 'PyEval_EvalCode', '_PyEval_Vector'];
  const top = [...entry, '<module>', 'main'];
  return {
    start, processes: 2,
    stacks: [
      [[...top, 'Ranker.score', 'dot', 'DOUBLE_add', 'dgemm_kernel'], 30], [[...top, 'Ranker.score', '_PyEval_EvalFrameDefault'], 14],
      [[...top, 'Ranker.score', 'PyList_Sort', 'PyObject_Vectorcall', 'sorted_key'], 9], [[...top, 'Ranker.score', 'PyDict_GetItem'], 6],
      [[...top, 'Ranker.load', 'loads', 'JSONDecoder.decode', 'PyUnicode_FromStringAndSize', 'malloc'], 12],
      [[...top, 'Ranker.load', 'sqlite3_step', 'entry_SYSCALL_64', 'do_syscall_64', 'vfs_read', 'copy_to_user'], 7],
      [['clone3', 'start_thread', 'dgemm_kernel'], 11], [[...entry.slice(0, 4), 'PyImport_Cleanup', 'memmove'], 2],
    ].map(([frames, n], k) => ({ frames, live: (t) => n * MB * jitter(t, k), rate: (t) => n * MB * jitter(t, k) })),
  };
}

export function makeServices(now) {
  const leakAt = now - LEAK_AGE_MS;
  const leaked = (t) => Math.max(0, (t - leakAt) / 1000) * 0.12 * MB;
  const leak = {
    frames: [...http, 'example.com/checkout/api.(*Handler).AddToCart', 'example.com/checkout/cart.Load', LEAK_FUNCTION],
    live: (t) => 0.4 * MB + leaked(t),
    rate: (t) => 0.05 * MB + (t > leakAt ? 0.12 * MB : 0),
  };
  const old = now - 26 * 3600e3;
  const services = new Map([
    ['checkout', { ...app('checkout', old, [leak]), processes: 3 }],
    ['search', app('search', old)],
    ['gateway', { ...app('gateway', old), processes: 2 }],
    ['billing', app('billing', now - 19 * 60e3)],
    ['mailer', app('mailer', old)],
    ['nightly', { ...app('nightly', now - 50 * 60e3), end: now - 30 * 60e3 }],
    ['importer', importer(now)],
    ['ranker', ranker(old)],
    ['giant', { start: old, giant: true, processes: 1, stacks: [{ frames: [], live: (t) => 420 * MB * jitter(t, 1), rate: (t) => 90 * MB * jitter(t, 2) }] }],
  ]);
  const scale = { search: 2.7, gateway: 0.6, billing: 0.35, mailer: 0.12 };
  for (const [name, k] of Object.entries(scale))
    for (const s of services.get(name).stacks) {
      const { live, rate } = s;
      s.live = (t) => live(t) * k;
      s.rate = (t) => rate(t) * k;
    }
  services.get('billing').events = [{ kind: 'oom_near', time: now - 4 * 60e3, pid: 100, rss_bytes: null, picture: null }];
  for (const [name, s] of services)
    Object.assign(s, { runtime: 'Go 1.27', parent: 'systemd' });
  for (const [name, s] of services)
    s.goroutines = goroutines(name, s.processes, name === 'checkout' ? (t) => Math.max(0, (t - leakAt) / 1000) * 0.4 : undefined);
  return services;
}

/** The answer to /api/types, as tools/registry_docs.py has written it. */
export const registry = JSON.parse(readFileSync(new URL('types.json', import.meta.url), 'utf8'));

const ALL = [
  ...registry.types.map(({ type, mode }) => ({ type, mode })),
  ...registry.metrics.filter((m) => m.stream).map((m) => ({ type: m.stream, mode: m.kind === 'gauge' ? 'snapshot' : 'delta' })),
].sort((a, b) => (a.type < b.type ? -1 : 1));
/* What Go programs have on a machine whose threads' waits nobody asked for. */
export const TYPES = ALL.filter(({ type }) => !/^(java_|offcpu:|system:)/.test(type));
/*
 * Only these services have all types; the others have the heap, as on a machine that lacks the rest.
 * `gateway` does not record where it blocks, `search` has no limit of memory.
 */
const FULL = ['checkout', 'search', 'gateway'];
const LACKS = { gateway: ['go_block:', 'go_mutex:'], search: ['go_runtime:memory_limit:'] };
export const typesOf = (service, { events, families }) =>
  families ? ALL.filter(({ type }) => families.includes(type.split(':')[0])) : TYPES.filter(({ type }) => (service === 'ranker' ? type.startsWith('cpu:') : type.startsWith('go_oom:') ? !!events
    : FULL.includes(service) ? !(LACKS[service] ?? []).some((l) => type.startsWith(l)) : type.startsWith('go_heap:')));

/* The runtime's own numbers, from the stacks; per second for delta types. */
function runtimeAt(s, name, t) {
  const live = s.stacks.reduce((sum, x) => sum + x.live(t), 0);
  const alloc = s.stacks.reduce((sum, x) => sum + x.rate(t), 0);
  const cycles = alloc / live;
  return {
    heap_live: live, heap_goal: 2 * live, heap_inuse: 1.1 * live, memory_used: 1.3 * live, memory: 1.25 * live + 8 * MB, memory_limit: 420 * MB, alloc,
    goroutines: s.goroutines.reduce((sum, g) => sum + g.count(t), 0), gomaxprocs: 8 * s.processes,
    gc_cpu_fraction: 9000 * s.processes * jitter(t, 3), gc_cycles: cycles, gc_pause: cycles * 2.4e5 * jitter(t, 9),
  }[name];
}

/** Resident memory at a time. */
export const residentKib = (s, t) => Math.round((s.rss ? s.rss(t) : 1.25 * s.stacks.reduce((sum, x) => sum + x.live(t), 0) + 8 * MB) / 1024);

/** What a service has of a type, by stack. */
export function stacksOf(service, type) {
  const [family, name] = type.type.split(':');
  if (family === 'go_goroutine' || name === 'goroutine')
    return service.goroutines.filter((g) => name === 'goroutine' || g.state === name).map((g) => ({ frames: g.frames, at: g.count }));
  if (family === 'go_runtime' || family === 'process') return [{ frames: ['runtime'], at: (t) => runtimeAt(service, name, t) }];
  return service.stacks.map((s) => ({ frames: s.frames, at: (t) => valueAt(s, type, t) }));
}

/* Stacks of goroutines are read once a minute. */
export const everyOf = (type) => (type.type.startsWith('go_goroutine:') ? 60e3 : 0);

/* From bytes to what else a stack has: some CPU per byte, some goroutines, a lock now and then. */
const PER_BYTE = {
  'cpu:samples:count': 99 / (96 * MB),
  'cpu:cpu:nanoseconds': 1e9 / (96 * MB),
  'go_block:contentions:count': 12 / MB,
  'go_block:delay:nanoseconds': 9e6 / MB,
  'go_mutex:contentions:count': 40 / MB,
  'go_mutex:delay:nanoseconds': 4e5 / MB,
};

/** A stack's value at a time; per second for delta types. */
function valueAt(stack, type, t) {
  const bytes = type.mode === 'delta' ? stack.rate(t) : stack.live(t);
  return bytes * (PER_BYTE[type.type] ?? (type.type.endsWith(':count') ? 1 / 96 : 1));
}

/** Depth-first columns of n nodes, with names as a large program has them. */
export function giantTree(n) {
  const r = random(7);
  const pkgs = ['runtime', 'net/http', 'encoding/json', 'reflect', 'sync', 'github.com/acme/mono/orders', 'github.com/acme/mono/pricing', 'github.com/acme/mono/stock', 'google.golang.org/grpc', 'google.golang.org/protobuf/proto', 'go.opentelemetry.io/otel/sdk/trace', 'main'];
  const names = ['all'];
  for (let i = 0; i < 9000; i++) names.push(`${pkgs[i % pkgs.length]}.(*Type${i % 211}).Method${i}`);
  const name = [0];
  const depth = [0];
  const weight = [0];
  let d = 0;
  while (name.length < n) {
    // Deep runs, then back up: about what real call trees look like.
    const back = r() < 0.75 ? 0 : Math.floor(1 + r() ** 7 * d * 1.1);
    d = Math.max(1, Math.min(118, d - back + 1));
    name.push(1 + Math.floor(r() * r() * 9000));
    depth.push(d);
    weight.push(r() ** 6);
  }
  const end = new Array(n).fill(n);
  const open = [];
  for (let i = 0; i < n; i++) {
    while (open.length > depth[i]) end[open.pop()] = i;
    open.push(i);
  }
  const self = weight.map((w, i) => (end[i] === i + 1 ? w : w * 0.05));
  const total = self.slice();
  const parent = [];
  const up = [];
  for (let i = 0; i < n; i++) {
    parent.push(depth[i] ? up[depth[i] - 1] : -1);
    up[depth[i]] = i;
  }
  for (let i = n - 1; i > 0; i--) total[parent[i]] += total[i];
  return { names, name, depth, self, total };
}
