/*
 * One type over time. A drag selects the window that is profiled (or, comparing, the baseline); the
 * bands are boxes over the plot. Mouse, finger and keyboard do the same.
 */
import { useEffect, useRef } from 'preact/hooks';
import uPlot from 'uplot';
import 'uplot/dist/uPlot.min.css';
import type { Series } from './api';
import { clock, rateUnit, span, time, typeText, value } from './format';
import type { Window } from './state';

export interface TimelineProps {
  series: Series;
  utc: boolean;
  dark: boolean;
  sel: Window | null;
  base: Window | null;
  picking: 'A' | 'B';
  type: string;
  onSelect(w: Window): void;
  onReset(): void;
}

const HEIGHT = 132;
const css = (name: string) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

/** Sums of a delta type become rates. */
function rates(s: Series): (number | null)[] {
  return s.mode === 'delta' ? s.points.map((v) => (v == null ? null : v / (s.step_ms / 1000))) : s.points;
}

/** Steps of memory are powers of two, so that the axis says 64 MB and not 61.0 MB. */
const POWERS = Array.from({ length: 50 }, (_, i) => 2 ** i);

function clocks(p: TimelineProps, splits: number[]): string[] {
  const long = p.series.to - p.series.from > 86400e3;
  const fine = splits.length > 1 && splits[1]! - splits[0]! < 60;
  return splits.map((s) => clock(s * 1e3, p.utc, fine, long));
}

type Now = { current: TimelineProps };

function options(now: Now, unit: string, width: number, read: (u: uPlot) => void): uPlot.Options {
  const axis = {
    stroke: css('--dim'),
    grid: { stroke: css('--grid'), width: 1 },
    ticks: { show: false },
    font: '11px system-ui, sans-serif',
  };
  const accent = css('--accent');
  const few = () => now.current.series.points.filter((v) => v != null).length < 3;
  return {
    width,
    height: HEIGHT,
    legend: { show: false },
    cursor: { drag: { x: false, y: false }, y: false, points: { size: 6, fill: accent } },
    tzDate: (ts) => (now.current.utc ? uPlot.tzDate(new Date(ts * 1e3), 'Etc/UTC') : new Date(ts * 1e3)),
    scales: {
      x: { time: true, range: () => [now.current.series.from / 1e3, now.current.series.to / 1e3] },
      y: { range: (_u, _min, max) => [0, (max || 1) * 1.08] },
    },
    series: [{}, { stroke: accent, width: 1.5, fill: css('--accent-fill'), points: { show: few } }],
    axes: [
      { ...axis, size: 26, space: 90, values: (_u, splits) => clocks(now.current, splits) },
      {
        ...axis,
        size: 72,
        space: 22,
        ...(unit.startsWith('bytes') ? { incrs: POWERS } : {}),
        values: (_u, splits) => splits.map((v) => value(v, unit).replace(/\.0+(?=\u2009)/, '')),
      },
    ],
    padding: [8, 30, 0, 0],
    hooks: { setCursor: [read] },
  };
}

export function Timeline(props: TimelineProps) {
  const host = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const bands = useRef<Record<'a' | 'b' | 'drag', HTMLDivElement> | null>(null);
  const readout = useRef<HTMLSpanElement>(null);
  const now = useRef(props);
  now.current = props;

  const put = (el: HTMLElement, w: Window | null) => {
    const u = plot.current;
    if (!u || !w) {
      el.hidden = true;
      return;
    }
    const width = u.over.clientWidth;
    const left = Math.max(0, u.valToPos(w.from / 1e3, 'x'));
    const right = Math.min(width, u.valToPos(w.to / 1e3, 'x'));
    el.hidden = right <= 0 || left >= width;
    el.style.left = `${left}px`;
    el.style.width = `${Math.max(2, right - left)}px`;
  };
  const place = () => {
    if (!bands.current) return;
    put(bands.current.a, now.current.base);
    put(bands.current.b, now.current.sel);
  };

  const unit = props.series.mode === 'delta' ? rateUnit(props.type) : props.series.unit;
  useEffect(() => {
    const read = (u: uPlot) => {
      const i = u.cursor.idx;
      const [xs, ys] = u.data;
      readout.current!.textContent =
        i == null || u.cursor.left! < 0 ? '' : `${time(xs[i]! * 1e3, now.current.utc)}  ${value(ys![i], unit)}`;
    };
    const width = host.current!.clientWidth;
    const u = new uPlot(options(now, unit, width, read), columns(now.current.series), host.current!);
    plot.current = u;
    const make = (name: string) => {
      const el = document.createElement('div');
      el.className = `band ${name}`;
      u.over.append(el);
      return el;
    };
    bands.current = { a: make('a'), b: make('b'), drag: make('drag') };
    bands.current.drag.hidden = true;
    const stop = dragging(u, bands.current.drag, now, put);
    const sized = new ResizeObserver(() => {
      u.setSize({ width: host.current!.clientWidth, height: HEIGHT });
      place();
    });
    sized.observe(host.current!);
    place();
    return () => {
      sized.disconnect();
      stop();
      u.destroy();
      plot.current = null;
    };
  }, [unit, props.utc, props.dark]);
  // New points go into the plot that is there: a refresh must not end a drag.
  useEffect(() => {
    plot.current!.setData(columns(props.series));
    place();
  }, [props.series]);
  useEffect(place, [props.sel, props.base]);

  return (
    <div
      class="timeline"
      data-picking={props.picking}
      tabIndex={0}
      role="group"
      aria-label={`${typeText(props.type).title} over time. Arrow keys move the window, with Shift they resize it, Escape resets.`}
      onKeyDown={(e) => keyed(e, now.current)}
    >
      <div ref={host} data-testid="timeline" />
      <span class="readout mono" ref={readout} aria-hidden="true" />
    </div>
  );
}

function columns(s: Series): uPlot.AlignedData {
  const points = rates(s);
  return [points.map((_, i) => (s.from + (i + 0.5) * s.step_ms) / 1e3), points];
}

type Put = (el: HTMLElement, w: Window | null) => void;

function dragging(u: uPlot, band: HTMLElement, now: Now, put: Put): () => void {
  const off = new AbortController();
  const on = { signal: off.signal };
  let start = NaN;
  let x0 = 0;
  const at = (e: PointerEvent) => {
    const box = u.over.getBoundingClientRect();
    const x = Math.max(0, Math.min(box.width, e.clientX - box.left));
    return u.posToVal(x, 'x') * 1e3;
  };
  const between = (e: PointerEvent) => {
    const end = at(e);
    return { from: Math.min(start, end), to: Math.max(start, end) };
  };
  u.over.addEventListener('pointerdown', (e) => {
    if (e.button !== 0) return;
    start = at(e);
    x0 = e.clientX;
    u.over.setPointerCapture(e.pointerId);
  }, on);
  u.over.addEventListener('pointermove', (e) => {
    if (!Number.isNaN(start) && Math.abs(e.clientX - x0) > 3) {
      put(band, between(e));
      band.dataset['len'] = span(between(e).to - between(e).from);
    }
  }, on);
  u.over.addEventListener('pointerup', (e) => {
    band.hidden = true;
    if (!Number.isNaN(start) && Math.abs(e.clientX - x0) > 3) now.current.onSelect(between(e));
    start = NaN;
  }, on);
  u.over.addEventListener('pointercancel', () => {
    band.hidden = true;
    start = NaN;
  }, on);
  u.over.addEventListener('dblclick', () => now.current.onReset(), on);
  return () => off.abort();
}

function keyed(e: KeyboardEvent, p: TimelineProps): void {
  const all = { from: p.series.from, to: p.series.to };
  const step = Math.max(p.series.step_ms, (all.to - all.from) / 60);
  const dir = e.key === 'ArrowLeft' ? -1 : e.key === 'ArrowRight' ? 1 : 0;
  if (e.key === 'Escape') p.onReset();
  else if (dir) {
    // Without a window yet, the first key takes the last quarter.
    const w = p.sel ?? { from: all.to - (all.to - all.from) / 4, to: all.to };
    const next = e.shiftKey
      ? { from: w.from, to: Math.max(w.from + step, w.to + dir * step) }
      : { from: w.from + dir * step, to: w.to + dir * step };
    p.onSelect(p.sel ? next : w);
  } else return;
  e.preventDefault();
  e.stopPropagation();
}
