/*
 * Go runtime statistics as small charts below the timeline, with the same time axis, cursor and
 * windows. One request for all, and only while visible.
 */
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { url, type ManySeries, type MetricCurves, type Params, type TypeSeries } from './api';
import { value } from './format';
import { Failure } from './parts';
import { Plot, type Chosen, type Curve } from './plot';
import { useQuery } from './query';
import { curve, latest, type Points } from './series';
import { familyOf, isRuntime, rateUnit, unitOf } from './types';

interface Entry {
  type: string;
  name: string;
  colour?: string; // none: only a number in the legend
  dash?: number[];
  loose?: boolean;
  fill?: boolean;
}

interface Chart {
  title: string;
  about: string;
  entries: Entry[];
  share?: boolean; // of the processors: not summed over processes
}

const SHARE = 'go_runtime:gc_cpu_fraction:ppm';

const CHARTS: Chart[] = [
  { title: 'Memory', about: 'resident memory of the process, what the Go runtime holds of it, live heap after the last garbage collection, heap goal of the next one, and memory limit', entries: [
    { type: 'process:memory:bytes', name: 'RSS', colour: '--curve-3' },
    { type: 'go_runtime:memory_used:bytes', name: 'runtime', colour: '--curve-4' },
    { type: 'go_runtime:heap_live:bytes', name: 'live heap', colour: '--accent', fill: true },
    { type: 'go_runtime:heap_goal:bytes', name: 'goal', colour: '--curve-2', dash: [5, 3] },
    { type: 'go_runtime:memory_limit:bytes', name: 'limit', colour: '--worse', dash: [2, 3], loose: true },
  ] },
  { title: 'Goroutines', about: 'all, and by state', entries: [
    { type: 'go_runtime:goroutines:count', name: 'all', colour: '--accent', fill: true },
    { type: 'go_goroutine:waiting:count', name: 'waiting', colour: '--curve-4', dash: [5, 3] },
    { type: 'go_goroutine:runnable:count', name: 'runnable', colour: '--curve-2' },
    { type: 'go_goroutine:running:count', name: 'running', colour: '--curve-3' },
    { type: 'go_goroutine:syscall:count', name: 'syscall', colour: '--dim', dash: [2, 3] },
  ] },
  { title: 'GC pauses', about: 'stop-the-world time per second, and garbage collections', entries: [
    { type: 'go_runtime:gc_pause:nanoseconds', name: 'paused', colour: '--accent', fill: true },
    { type: 'go_runtime:gc_cycles:count', name: 'cycles' },
  ] },
  { title: 'GC CPU', about: 'share of available CPU time spent in garbage collection since the start', share: true, entries: [
    { type: SHARE, name: 'share', colour: '--accent', fill: true },
    { type: 'go_runtime:gomaxprocs:count', name: 'GOMAXPROCS' },
  ] },
  { title: 'Allocations', about: 'bytes allocated per second', entries: [
    { type: 'go_runtime:alloc:bytes', name: 'rate', colour: '--accent', fill: true },
  ] },
];

const HEIGHT = 96;
export const CURVES = CHARTS.flatMap((c) => c.entries.map((e) => e.type));

/** The share of several processes in all their processors; at each step, of those that live then. */
export function livingShare(shares: MetricCurves, processors: MetricCurves): { points: Points; living: number } {
  const key = (labels: { value: string }[]) => labels.map((l) => l.value).join();
  const weights = new Map(processors.series.map((s) => [key(s.labels), s.points ?? []]));
  const rows = shares.series.map((s) => ({ share: s.points ?? [], weight: weights.get(key(s.labels)) ?? [] }));
  let living = 0;
  const points = Array.from({ length: Math.max(0, ...rows.map((r) => r.share.length)) }, (_, i) => {
    const some = rows.filter((r) => r.share[i] != null && r.weight[i]);
    if (!some.length) return null;
    living = some.length;
    return some.reduce((sum, r) => sum + r.share[i]! * r.weight[i]!, 0) / some.reduce((sum, r) => sum + r.weight[i]!, 0);
  });
  return { points, living };
}

interface Known extends Entry {
  points: Points;
  unit: string;
  now: number | undefined;
}

function known(e: Entry, data: ManySeries): Known | null {
  const s = data.series.find((x) => x.type === e.type);
  if (!s || s.points.every((v) => v == null)) return null;
  const rate = s.mode === 'delta';
  const points = curve(s.mode, s.points, data.step_ms);
  return { ...e, points, unit: rate ? rateUnit(e.type) : unitOf(e.type), now: latest(points, rate) };
}

/** Minimum and maximum, for screen readers. */
function extent(k: Known): string {
  const some = k.points.filter((v): v is number => v != null);
  const text = (v: number) => value(v, k.unit);
  return `${k.name} ${text(Math.min(...some))} to ${text(Math.max(...some))}`;
}

interface SmallProps extends Chosen {
  chart: Chart;
  data: ManySeries;
  living: number;
  utc: boolean;
  dark: boolean;
}

function Small(props: SmallProps) {
  const { chart, data } = props;
  const legend = useRef<HTMLSpanElement>(null);
  const entries = useMemo(() => chart.entries.map((e) => known(e, data)).filter((k): k is Known => !!k), [data]);
  const drawn = entries.filter((k) => k.colour);
  const curves = useMemo(() => drawn.map((k): Curve => ({ ...k, colour: k.colour! })), [entries]);
  if (!drawn.length) return null;
  const read = (i: number | null) =>
    legend.current?.querySelectorAll('b').forEach((b, k) => {
      const e = entries[k];
      if (e) (b.firstChild as Text).data = value(i == null ? e.now : e.points[i], e.unit);
    });
  return (
    <figure class="small" aria-label={`${chart.title}: ${drawn.map(extent).join(', ')}`}>
      <figcaption title={chart.about}>
        <span class="smalltitle">{chart.title}{chart.share && props.living > 1 && <span class="dim"> of {props.living} processes</span>}</span>
        <span class="smalllegend" ref={legend}>
          {entries.map((k) => (
            <span>
              {k.colour && <i style={{ background: `var(${k.colour})` }} aria-hidden="true" />}
              {k.name} <b>{value(k.now, k.unit)}</b>
            </span>
          ))}
        </span>
      </figcaption>
      <Plot {...props} slim from={data.from} to={data.to} step_ms={data.step_ms} curves={curves} unit={drawn[0]!.unit} height={HEIGHT} onCursor={read} />
    </figure>
  );
}

/** One line with the latest values, from data already loaded. */
function summary(types: TypeSeries[], step: number): string {
  const now = (name: string): string | null => {
    const t = types.find((x) => x.type === name || x.type === `go_runtime:${name}`);
    if (!t) return null;
    const rate = t.mode === 'delta';
    const v = latest(curve(t.mode, t.series, step), rate);
    return v == null ? null : value(v, rate ? rateUnit(t.type) : unitOf(t.type));
  };
  const rss = now('process:memory:bytes');
  const live = now('heap_live:bytes');
  const goal = now('heap_goal:bytes');
  const goroutines = now('goroutines:count');
  const pause = now('gc_pause:nanoseconds');
  const share = now('gc_cpu_fraction:ppm');
  return [
    rss && `RSS ${rss}`,
    live && `heap ${live}${goal ? ` of ${goal} goal` : ''}`,
    goroutines && `${goroutines} ${goroutines === '1' ? 'goroutine' : 'goroutines'}`,
    pause && `GC pauses ${pause}`,
    share && `GC CPU ${share}`,
  ].filter((t) => t).join(' · ');
}

export interface RuntimeProps extends Chosen {
  types: TypeSeries[];
  step: number; // of their series
  common: Params; // service and labels
  window: Params;
  processes: number; // in the range, dead or alive
  open: boolean;
  setOpen(open: boolean): void;
  utc: boolean;
  dark: boolean;
}

/** True while any of it is on screen: on a phone it scrolls away. */
function useSeen(): [boolean, { current: HTMLElement | null }] {
  const el = useRef<HTMLElement>(null);
  const [seen, set] = useState(false);
  useEffect(() => {
    const watch = new IntersectionObserver((list) => set(list.some((x) => x.isIntersecting)));
    watch.observe(el.current!);
    return () => watch.disconnect();
  }, []);
  return [seen, el];
}

interface Living {
  points: Points | null; // null: there is one process, and its series will do
  living: number;
}

/** Processes that have ended do not count any more, so those of the range are asked for one by one. */
function useLiving(props: RuntimeProps, data: ManySeries | null): Living | null {
  const several = props.processes > 1 && data?.series.some((s) => s.type === SHARE);
  const address = (metric: string) => several ? url('/api/metrics', [...props.common, ['metric', metric], ['group', 'process.pid'],
    ['from', data!.from], ['to', data!.to], ['step_ms', data!.step_ms]]) : null;
  const shares = useQuery<MetricCurves>(address('go.memory.gc.cpu.fraction')).data;
  const processors = useQuery<MetricCurves>(address('go.processor.limit')).data;
  const known = useMemo(() => (shares && processors ? livingShare(shares, processors) : null), [shares, processors]);
  const last = useRef<Living | null>(null);
  if (known) last.current = known;
  if (props.processes <= 1) return { points: null, living: 1 };
  return known ?? last.current ?? { points: [], living: 0 };
}

export function Runtime(props: RuntimeProps) {
  const [seen, el] = useSeen();
  const asked = props.open && seen;
  const address = asked ? url('/api/series', [...props.common, ...CURVES.map((t): [string, string] => ['type', t]), ...props.window]) : null;
  const fresh = useQuery<ManySeries>(address);
  // Keep the data while scrolled away.
  const held = useRef<ManySeries | null>(null);
  if (fresh.data) held.current = fresh.data;
  const living = useLiving(props, asked ? held.current : null);
  const data = held.current && living && {
    ...held.current,
    series: held.current.series.map((s) => (s.type === SHARE && living.points ? { ...s, points: living.points } : s)),
  };
  const charts = CHARTS.filter((c) => data?.series.some((s) => c.entries.some((e) => e.colour && e.type === s.type)));
  return (
    <section class="runtime" aria-labelledby="runtime-title" ref={el}>
      <div class="runtimehead">
        <h2 id="runtime-title">
          <button type="button" class="link" aria-expanded={props.open} aria-keyshortcuts="g" title="Key: g" onClick={() => props.setOpen(!props.open)}>
            <span aria-hidden="true" class="fold">{props.open ? '▾' : '▸'}</span> {props.types.some((t) => familyOf(t.type).startsWith('go_')) ? 'Go runtime' : 'Memory'}
          </button>
        </h2>
        {!props.open && <span class="dim">{summary(props.types.filter((t) => isRuntime(t.type)), props.step)}</span>}
      </div>
      {props.open && fresh.error && <Failure error={fresh.error} retry={fresh.retry} />}
      {props.open && (
        <div class="smalls">
          {data && charts.map((c) => (
            <Small key={c.title} chart={c} data={data} living={living!.living} sel={props.sel} base={props.base} marks={props.marks}
              onSelect={props.onSelect} onReset={props.onReset} utc={props.utc} dark={props.dark} />
          ))}
          {data && !charts.length && <p class="dim">No runtime data in this range.</p>}
        </div>
      )}
    </section>
  );
}
