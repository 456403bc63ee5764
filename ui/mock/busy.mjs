// A busy machine: as many services as wanted, the same at every start. Most are short-lived programs of shells,
// builds and cron; a few dozen serve, some of them have stopped. Each is what data.mjs calls a service.
import { random } from './data.mjs';

const MB = 1048576;
const HOUR = 3600e3;
const LONGEST = 127; // bytes of a name

const SERVING = [
  ['Java 21', ['order-api', 'kafka', 'elasticsearch', 'keycloak', 'pricing-engine', 'fulfilment', 'jenkins', 'zookeeper'], 1.6, 2600],
  ['Java 17', ['ledger', 'reporting', 'hbase-master'], 0.5, 1500],
  ['Go 1.27', ['prometheus', 'loki', 'etcd', 'traefik', 'minio', 'vault', 'grafana', 'thanos-sidecar', 'cert-manager'], 0.5, 420],
  ['Go 1.24', ['containerd', 'dockerd', 'kubelet', 'node_exporter', 'coredns'], 0.2, 130],
  ['Python 3.11', ['recommender', 'celery-worker', 'airflow-scheduler', 'etl/daily_sales.py', 'gunicorn', 'ansible-runner'], 0.7, 640],
  ['Python 3.13', ['fraud-model', 'unattended-upgrades'], 0.3, 900],
  ['Node 20', ['storefront', 'graphql-gateway', 'chat', 'pdf-render'], 0.6, 380],
  ['Node 22', ['websocket-edge', 'admin-ui'], 0.3, 240],
  ['native', ['postgres', 'nginx', 'redis-server', 'envoy', 'haproxy', 'clickhouse-server', 'rsyslogd', 'dbus-daemon', 'cron', 'sshd', 'systemd-journald', 'chronyd', 'memcached', 'varnishd', 'bash', 'make', 'buildkitd'], 0.3, 180],
];
const PARENTS = ['bash', 'make', 'cron', 'jenkins', 'buildkitd', 'ansible-runner', 'sshd', ''];
const TOOLS = 'touch tr cc1 cc1plus as ld collect2 sed grep awk cut sort uniq head tail cat ls cp mv rm mkdir rmdir ln chmod chown find xargs date sleep id uname hostname env expr test printf echo dirname basename mktemp tee wc cmp diff patch tar gzip xz zstd git git-remote-https ssh-keygen install strip ar ranlib objcopy nm readelf pkg-config cmake ninja ccache python3 perl node npm java javac go compile link vet gofmt curl wget jq openssl ps kill pgrep ip ss dig getent tput stty clear man less which file stat du df free mount umount lsblk logrotate run-parts certbot systemctl journalctl apt-get dpkg debconf update-ca-certificates'.split(' ');

/* Slow tides, quick ripples; `k` tells services apart. */
const load = (k) => (t) => Math.max(0.02, 1 + 0.22 * Math.sin(t / (7 + (k % 9)) / 60e3 + k) + 0.1 * Math.sin(t / 41e3 + k * 3) + 0.06 * Math.sin(t / 9e3 + k * 5));

/* One stack per part of a program: what each spends, as bytes that data.mjs turns into CPU time. */
function stacksOf(name, runtime, cores, rss) {
  const frames = {
    G: [`main.main`, `example.com/${name}.(*Server).run`, `example.com/${name}.(*Server).handle`],
    J: ['java.lang.Thread.run', `com.example.${name.replace(/\W/g, '')}.Worker.run`, `com.example.${name.replace(/\W/g, '')}.Worker.step`],
    P: ['<module>', 'main', 'handle_request'],
    N: ['(root)', 'processTicksAndRejections', 'onRequest'],
    n: ['_start', 'main', 'event_loop'],
  }[runtime[0]];
  return [[1, ''], [0.3, 'parse'], [0.2, 'write']].map(([share, leaf]) => ({
    frames: leaf ? [...frames, leaf] : frames, live: (t) => (rss(t) * share) / 1.9, rate: (t) => (cores(t) * share * 96 * MB) / 1.5,
  }));
}

const FAMILIES = { G: ['cpu', 'go_heap', 'go_goroutine', 'go_runtime'], J: ['cpu', 'java_alloc', 'java_lock'], P: ['cpu'], N: ['cpu'], n: ['cpu'] };

function service(name, runtime, { start, end, processes = 1, cores, rss, ...more }) {
  return { start, end, processes, runtime, parent: '', short: false, families: FAMILIES[runtime[0]], rss, goroutines: [], stacks: stacksOf(name, runtime, cores, rss), ...more };
}

function serving(name, runtime, { k, now, r, cores, mb }) {
  const wave = load(k);
  const size = cores * (0.05 + 1.1 * r() * r());
  const memory = mb * (0.4 + 1.2 * r()) * MB;
  // Something happened a quarter of an hour ago: one needs more CPU, another one grows.
  const busier = name === 'pricing-engine' ? (t) => (t > now - 14 * 60e3 ? 3.1 : 1) : () => 1;
  const grown = name === 'fraud-model' ? (t) => 1 + Math.max(0, (t - (now - 20 * 60e3)) / (16 * 60e3)) : () => 1;
  return service(name, runtime, {
    start: now - (1 + 25 * r()) * HOUR, processes: 1 + Math.floor(r() * r() * 6), parent: 'systemd',
    cores: (t) => size * wave(t) * busier(t), rss: (t) => memory * (1 + 0.02 * (wave(t) - 1)) * grown(t),
  });
}

/* Runs for seconds, now and then: most steps have nothing of it. */
function shortLived(name, { k, now, r }) {
  const every = (4 + 40 * r()) * 60e3;
  const lasts = (0.15 + 0.5 * r()) * 60e3;
  const phase = r() * every;
  const size = 0.02 + 0.5 * r() ** 6;
  const start = now - (1 + 20 * r()) * HOUR;
  const end = now - (1 + 30 * r() * r()) * 60e3;
  // Milliseconds of that time in which it ran.
  const runs = (from, to) => {
    let sum = 0;
    for (let t = Math.floor((from + phase) / every) * every - phase; t < Math.min(to, end); t += every)
      sum += Math.max(0, Math.min(to, t + lasts) - Math.max(from, t));
    return sum;
  };
  return service(name, 'native', {
    start, end, parent: PARENTS[Math.floor(r() * r() * PARENTS.length)], short: true, cores: (t) => size * load(k)(t), rss: () => (2 + (k % 40)) * MB, runs,
  });
}

const number = (n) => String(n).padStart(3, '0');

function toolName(i) {
  if (i < TOOLS.length) return TOOLS[i];
  const n = i - TOOLS.length;
  if (n % 97 === 5) return `integration_test_of_the_warehouse_import_pipeline_with_all_of_its_fixtures_and_very_long_names_${n}_`.padEnd(LONGEST, 'x');
  return [`conftest-${number(n)}`, `unit_store_${number(n)}`, `b${number(n)}/exe/main`, `mktemp.${(n * 7919).toString(36)}`, `rustc-${number(n)}`][n % 5];
}

/** Adds services until there are `count`. */
export function addBusyMachine(services, now, count) {
  const r = random(15);
  let k = 0;
  const add = (name, make, about = {}) => services.size < count && !services.has(name) && services.set(name, make(name, { k: ++k, now, r, ...about }));
  for (const [runtime, names, cores, mb] of SERVING)
    for (const name of names) add(name, (n, a) => serving(n, runtime, a), { cores, mb });
  for (let i = 0; i < 24; i++)
    add(`batch-${['invoice', 'export', 'thumbnail', 'backup'][i % 4]}-${number(i)}`, (n, a) => ({ ...serving(n, SERVING[i % SERVING.length][0], a), end: now - (3 + i * 2) * 60e3 }), { cores: 0.3, mb: 200 });
  const before = services.size;
  while (services.size < count) add(toolName(services.size - before), shortLived);
  return services;
}
