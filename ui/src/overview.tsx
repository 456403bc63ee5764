/* The overview: all services, what cannot be profiled and why, and the health of sonde itself. */
import { useMemo, useState } from 'preact/hooks';
import { missing, url, type Feature, type Health, type OomEvent, type Service, type Services, type Target, type Targets, type TypeSeries } from './api';
import { OomNote, useEvents } from './events';
import { percent, span, value } from './format';
import { Empty, Failure, Progress, Spark } from './parts';
import { useQuery } from './query';
import { curve, ended, latest, type Points } from './series';
import { format, go, rangeWindow, sparkWindow, START, type State } from './state';
import { countedBy, isPicture, isProfile, kindOf, OFF_BY_DEFAULT, rateUnit, typeText, unitOf } from './types';

/** A column shows the first of these kinds that the service has, in any family of profiles. */
interface Column {
  key: string;
  readonly title: string; // a getter: the registry is loaded later than this module
  kinds: string[];
}

/** Titled after its main type. */
const column = (type: string, ...more: string[]): Column => ({
  key: kindOf(type), kinds: [kindOf(type), ...more],
  get title() { return typeText(type).title; },
});

/* Goroutine counts come with every collection; their stacks are read less often. */
const COLUMNS: Column[] = [
  column('cpu:cpu:nanoseconds'),
  column('go_heap:alloc_space:bytes', 'alloc:bytes'),
  column('go_heap:inuse_space:bytes'),
  column('go_runtime:goroutines:count', 'goroutine:count'),
];

/* A Go process has more than twenty types; the rest is on its own page. */
const WANTED = COLUMNS.flatMap((c) => c.kinds).map((k): [string, string] => ['type', `*:${k}`]);

interface Cell {
  type: string; // the profile it links to; empty: the service
  series: Points;
  unit: string;
  now: number | null; // null: no longer running
  trend: number; // last quarter relative to the first, from -1 up
}

function cellOf(of: Column, types: TypeSeries[], step: number): Cell | null {
  const mine = types.filter((t) => !isPicture(t.type) && of.kinds.includes(kindOf(t.type)));
  const first = mine.find((x) => kindOf(x.type) === of.key) ?? mine[0];
  const t = mine.find((x) => x.type === countedBy(first?.type ?? '', mine));
  if (!t) return null;
  const rate = t.mode === 'delta';
  const series = curve(t.mode, t.series, step);
  const known = series.filter((v): v is number => v != null);
  if (!known.length) return null;
  const unit = rate ? rateUnit(t.type) : unitOf(t.type);
  const quarter = Math.max(1, Math.floor(known.length / 4));
  const mean = (a: number[]) => a.reduce((s, v) => s + v, 0) / a.length;
  const head = mean(known.slice(0, quarter));
  const trend = known.length < 8 || !head ? 0 : mean(known.slice(-quarter)) / head - 1;
  const gone = ended(rate ? series : t.series);
  return { type: mine.find((x) => isProfile(x.type))?.type ?? '', series, unit, now: gone ? null : latest(series, rate)!, trend };
}

function Trend({ of }: { of: number }) {
  if (Math.abs(of) < 0.1) return <span class="trend dim" title="Stable over the range">→</span>;
  const text = of >= 9.995 ? `×${(1 + of).toFixed(0)}` : `${of > 0 ? '+' : '−'}${Math.abs(of * 100).toFixed(0)}%`;
  return (
    <span class={of > 0 ? 'trend up' : 'trend down'} title="Last quarter of the range compared to the first">
      {of > 0 ? '↗' : '↘'} {text}
    </span>
  );
}

interface Line {
  service: Service;
  cells: (Cell | null)[];
  events: OomEvent[];
}

/* When hunting a leak, you want the largest heap on top. */
const SORTED = 'inuse_space:bytes';

function ServiceTable({ lines, columns, state, utc }: { lines: Line[]; columns: Column[]; state: State; utc: boolean }) {
  const [key, dir] = (state.sort || `${columns.some((c) => c.key === SORTED) ? SORTED : columns[0]?.key} down`).split(' ');
  const down = dir !== 'up';
  const at = columns.findIndex((c) => c.key === key);
  const sorted = useMemo(() => {
    const cell = (l: Line, i: number) => l.cells[i]?.now ?? -1;
    const num = (l: Line) => (key === 'processes' ? l.service.processes : cell(l, at));
    const list = lines.slice().sort((a, b) => a.service.service.localeCompare(b.service.service));
    if (key === 'name') return down ? list : list.reverse();
    // Services without a value in this column are sorted by the first one.
    return list.sort((a, b) => (down ? num(b) - num(a) : num(a) - num(b)) || cell(b, 0) - cell(a, 0));
  }, [lines, key, down]);
  const head = (k: string, title: string, cls = '') => (
    <th scope="col" class={cls} aria-sort={key === k ? (down ? 'descending' : 'ascending') : 'none'}>
      <button type="button" class="link" onClick={() => go({ sort: `${k} ${key === k && down ? 'up' : 'down'}` }, true)}>
        {title}
        <span aria-hidden="true">{key === k ? (down ? ' ↓' : ' ↑') : ''}</span>
      </button>
    </th>
  );
  return (
    <table class="services">
      <thead>
        <tr>
          {head('name', 'Service')}
          {head('processes', 'Processes', 'num')}
          {columns.map((c) => head(c.key, c.title))}
        </tr>
      </thead>
      <tbody>
        {sorted.map(({ service: s, cells, events }) => {
          const link = (type: string) => format({ ...START, service: s.service, range: state.range, type });
          return (
            <tr key={s.service}>
              <th scope="row">
                <a href={link('')}>{s.service}</a>
                <OomNote events={events} range={state.range} utc={utc} />
              </th>
              <td class="num dim" data-title="Processes">{s.processes}</td>
              {cells.map((c, i) => (
                <td data-title={columns[i]!.title}>
                  {c ? (
                    <a class="cell" href={link(c.type)} aria-label={`${s.service}, ${columns[i]!.title}: ${c.now == null ? 'not running' : value(c.now, c.unit)}`}>
                      <Spark points={c.series} />
                      {c.now == null ? <span class="now dim">not running</span> : <span class="now">{value(c.now, c.unit)}</span>}
                      {c.now != null && <Trend of={c.trend} />}
                    </a>
                  ) : <span class="dim">–</span>}
                </td>
              ))}
            </tr>
          );
        })}
      </tbody>
    </table>
  );
}

interface Group {
  reason: string;
  remedy: string;
  targets: Target[];
}

/* This reader is the same for all processes. */
const CPU = 'cpu';
/* Off in most programs; the service page explains them. */
const OPTIONAL = OFF_BY_DEFAULT.map((o) => o.reader);

/** Why there is no CPU column, if there is none. */
function NoCpu({ targets }: { targets: Target[] }) {
  const cpu = targets[0]?.readers.find((r) => r.reader === CPU);
  if (!cpu || cpu.available) return null;
  return <p class="hint">No CPU profiles: {cpu.reason}{cpu.remedy && `; ${cpu.remedy}`}.</p>;
}

/** Thousands of processes share a handful of reasons: one line each. */
function groupByReason(targets: Target[]): Group[] {
  const groups = new Map<string, Group>();
  for (const t of targets) {
    if (!t.readers.length) continue;
    // CPU sampling is the same for all. Of the other readers, only what can be fixed is worth a line.
    const some = t.readers.some((r) => r.available);
    const said = some ? t.readers.find((r) => !r.available && r.remedy && r.reader !== CPU && !OPTIONAL.includes(r.reader))
      : (t.readers.find((r) => r.reason) ?? t.readers[0]!);
    if (!said) continue;
    const reason = some ? `${said.reader}: ${said.reason}` : said.reason ?? 'no reason given';
    const remedy = said.remedy ?? '';
    const key = `${reason}\n${remedy}`;
    const g = groups.get(key);
    if (g) g.targets.push(t);
    else groups.set(key, { reason, remedy, targets: [t] });
  }
  // What can be fixed comes first.
  return [...groups.values()].sort(
    (a, b) => Number(!!b.remedy) - Number(!!a.remedy) || b.targets.length - a.targets.length,
  );
}

const WHO = 12;

function Unprofiled({ targets, filter }: { targets: Target[]; filter: string }) {
  const [open, setOpen] = useState<string>('');
  const low = filter.toLowerCase();
  const groups = useMemo(
    () => groupByReason(targets.filter((t) => !low || `${t.comm} ${t.exe ?? ''} ${t.pid} ${t.service ?? ''}`.toLowerCase().includes(low))),
    [targets, low],
  );
  const count = groups.reduce((s, g) => s + g.targets.length, 0);
  if (!count) return null;
  return (
    <section aria-labelledby="not-profiled">
      <h2 id="not-profiled">Not profiled <span class="dim">{count}</span></h2>
      <table class="why">
        <thead><tr><th scope="col">Reason</th><th scope="col">Fix</th><th scope="col">Processes</th></tr></thead>
        <tbody>
          {groups.map((g) => {
            const all = open === g.reason;
            const shown = all ? g.targets : g.targets.slice(0, WHO);
            return (
              <tr>
                <td data-title="Reason">{g.reason}</td>
                <td data-title="Fix">{g.remedy || <span class="dim">none</span>}</td>
                <td data-title="Processes" class="who">
                  {shown.map((t) => <><span class="proc" title={t.exe ?? ''}>{t.comm} <span class="dim">{t.pid}</span></span> </>)}
                  {g.targets.length > WHO && (
                    <button type="button" class="link" aria-expanded={all} onClick={() => setOpen(all ? '' : g.reason)}>
                      {all ? 'show fewer' : `and ${g.targets.length - WHO} more`}
                    </button>
                  )}
                </td>
              </tr>
            );
          })}
        </tbody>
      </table>
    </section>
  );
}

function Troubled({ targets }: { targets: Target[] }) {
  const lines = targets.flatMap((t) =>
    t.readers.filter((r) => r.available && (r.trouble || r.slow)).map((r) => ({ t, r })),
  );
  if (!lines.length) return null;
  return (
    <section aria-labelledby="troubled">
      <h2 id="troubled">Profiled with errors <span class="dim">{lines.length}</span></h2>
      <ul class="plain">
        {lines.slice(0, 50).map(({ t, r }) => (
          <li>
            <b>{t.service ?? t.comm}</b> <span class="dim">{t.pid} · {r.reader}</span> {r.trouble ?? 'missed its deadline'}
          </li>
        ))}
      </ul>
    </section>
  );
}

/** One line names what is missing; expanded, it gives reasons and fixes. */
function Missing({ features }: { features: Feature[] }) {
  if (!features.length) return null;
  return (
    <details class="missing">
      <summary class="warn">{features.map((f) => `${f.title}: ${f.state}`).join(' · ')}</summary>
      <table class="why">
        <thead>
          <tr>
            <th scope="col">Feature</th>
            <th scope="col">Reason</th>
            <th scope="col">Fix</th>
          </tr>
        </thead>
        <tbody>
          {features.map((f) => (
            <tr>
              <td data-title="Feature">{f.title}: {f.state}</td>
              <td data-title="Reason">{f.reason}</td>
              <td data-title="Fix">{f.remedy ? <code>{f.remedy}</code> : <span class="dim">none</span>}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </details>
  );
}

export function HealthLine({ health }: { health: Health }) {
  const h = health;
  const said = [h.trouble, h.store.trouble, h.store.damage, h.store.budget].filter((t): t is string => !!t);
  const troubles = [...new Set(said)];
  if (!h.store.writing && !h.store.trouble) troubles.push('Profiles are not being stored.');
  if (h.store.clock_ahead_ms) troubles.push(`The clock jumped ahead by ${span(h.store.clock_ahead_ms)}: old days are kept until 24 h confirm it.`);
  const losses: [number, string][] = [
    [h.failures, 'failed collections'],
    [h.hung_reads, 'reads that hang'],
    [h.lost_records, 'lost records'],
    [h.cpu_samples_lost, 'lost CPU samples'],
    [h.write_failures, 'failed writes'],
    [h.sinks.reduce((n, s) => n + s.dropped + s.spool_lost, 0), 'dropped records'],
    [h.store.profiles_lost, 'lost profiles'],
    [h.store.damaged_files, 'damaged files moved aside'],
    [h.store.damaged_blocks, 'damaged blocks'],
    [h.store.over_budget, 'over budget, stored as (other)'],
  ];
  const item = (k: string, v: string, about: string) => (
    <span title={about}><span class="dim">{k}</span> {v}</span>
  );
  return (
    <footer class="health" aria-label="Health of sonde">
      {item('sonde', h.version, `up for ${span(h.uptime_ms)}`)}
      {item('CPU', `${h.cpu_percent.toFixed(2)}%`, 'of one core, since startup')}
      {item('RSS', value(h.rss_bytes, 'bytes'), 'resident memory')}
      {item('lag', `${Math.round(h.lag_ms)} ms`, 'delay of the last collection interval')}
      {item('heaps', `${h.profiled} of ${h.targets}`, 'processes with a heap profile')}
      {item('interval', span(h.interval_ms), 'collection interval')}
      {item('store', `${value(h.store.bytes, 'bytes')}, ${h.store.days} ${h.store.days === 1 ? 'day' : 'days'}`, `${h.store.samples} samples`)}
      {losses.filter(([n]) => n > 0).map(([n, text]) => <span class="warn">{n} {text}</span>)}
      {troubles.map((t) => <span class="warn" role="alert">{t}</span>)}
      <Missing features={missing(h.features)} />
    </footer>
  );
}

export function Overview({ state, now, health, utc }: { state: State; now: number; health: Health | null; utc: boolean }) {
  const range = rangeWindow(state.range, now, health?.store.oldest ?? 0);
  const w = sparkWindow(range, health?.interval_ms ?? 15000);
  const services = useQuery<Services>(
    url('/api/services', [...WANTED, ['from', Math.round(w.from)], ['to', Math.round(w.to)], ['points', w.points]]),
  );
  const targets = useQuery<Targets>('/api/targets', undefined, now);
  const low = state.filter.toLowerCase();
  const data = services.data;
  const events = useEvents(data?.services, w, state.range);
  const columns = useMemo(() => {
    const present = new Set(data?.services.flatMap((s) => s.types.filter((t) => !isPicture(t.type)).map((t) => kindOf(t.type))));
    return COLUMNS.filter((c) => c.kinds.some((k) => present.has(k)));
  }, [data]);
  const lines = useMemo(
    () => (data?.services ?? []).filter((s) => s.service.toLowerCase().includes(low)).map((s): Line => ({
      service: s,
      cells: columns.map((c) => cellOf(c, s.types, data!.step_ms)),
      events: events.filter((e) => e.service === s.service),
    })),
    [data, columns, low, events],
  );

  return (
    <main class="overview" id="main">
      <Progress on={services.slow} />
      <h1 class="sr">Services</h1>
      {services.error && <Failure error={services.error} retry={services.retry} />}
      {!data && services.loading && services.slow && <Skeleton />}
      {data && data.services.length > 0 && (
        <section aria-labelledby="services">
          <div class="sectionhead">
            <h2 id="services">Services <span class="dim">{lines.length < data.services.length ? `${lines.length} of ${data.services.length}` : data.services.length}</span></h2>
            <input
              type="search"
              id="search"
              placeholder="Filter services"
              aria-label="Filter services and processes"
              aria-keyshortcuts="/"
              value={state.filter}
              onInput={(e) => go({ filter: e.currentTarget.value }, true)}
            />
          </div>
          {lines.length ? <ServiceTable lines={lines} columns={columns} state={state} utc={utc} />
            : <p class="hint">No service matches. <button type="button" class="link accent" onClick={() => go({ filter: '' }, true)}>Clear filter</button></p>}
        </section>
      )}
      {data && !data.services.length && <NoServices health={health} range={state.range} />}
      {targets.data && <NoCpu targets={targets.data.targets} />}
      {targets.data && <Troubled targets={targets.data.targets} />}
      {targets.data && <Unprofiled targets={targets.data.targets} filter={state.filter} />}
      {targets.error && !services.error && <Failure error={targets.error} retry={targets.retry} />}
    </main>
  );
}

function Skeleton() {
  return <div class="skeleton" aria-hidden="true">{[1, 2, 3, 4, 5].map(() => <div />)}</div>;
}

function NoServices({ health, range }: { health: Health | null; range: string }) {
  const share = health && health.targets ? percent(health.profiled, health.targets) : '';
  if (health && health.profiled > 0)
    return (
      <Empty title="No data in this range yet">
        <p>
          {health.profiled} {health.profiled === 1 ? 'process is' : 'processes are'} being profiled ({share} of all).
          Values appear after the second collection, within {span(health.interval_ms * 2)}.
        </p>
        {range !== '24h' && <button type="button" onClick={() => go({ range: '24h' })}>Show the last 24 h</button>}
      </Empty>
    );
  return (
    <Empty title="Nothing to profile yet">
      <p>
        New processes appear within {span(health ? health.interval_ms * 2 : 30000)}, without code changes or restarts.
        Those that cannot be profiled are listed below with the reason. CPU profiles and processes of other users
        need root: <code>sudo sonde run</code>.
      </p>
    </Empty>
  );
}
