/*
 * Curves over one stretch of time. A drag selects the window that is profiled (or, comparing, the
 * baseline); bands and marks are boxes over the plot. All plots of a page share their cursor.
 */
import { useEffect, useRef } from 'preact/hooks';
import uPlot from 'uplot';
import 'uplot/dist/uPlot.min.css';
import { clock, span, value } from './format';
import type { Points } from './series';
import type { Window } from './state';

export interface Curve {
  name: string;
  points: Points;
  colour: string; // a variable of the theme
  fill?: boolean;
  solid?: boolean; // filled with its own colour, for curves that lie on each other
  dash?: number[];
  loose?: boolean; // a bound: drawn where it fits, the scale does not reach for it
}

/** A moment, as a line from top to bottom that can be clicked. */
export interface Mark {
  at: number;
  kind: string;
  text: string;
  open(): void;
}

export interface Chosen {
  sel: Window | null;
  base: Window | null;
  marks: Mark[];
  onSelect(w: Window): void;
  onReset(): void;
}

export interface PlotProps extends Chosen {
  from: number;
  to: number;
  step_ms: number;
  curves: Curve[];
  unit: string;
  height: number;
  slim?: boolean;
  late?: Window[]; // where points are not as they were measured
  utc: boolean;
  dark: boolean;
  top?: number; // of the scale; otherwise the highest point
  /** The step under the cursor, here or in another plot; null when there is none. */
  onCursor(i: number | null): void;
  /** A value under the pointer, and whether it was clicked. */
  onPoint?(i: number, y: number, clicked: boolean): void;
}

const css = (name: string) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

/** Memory steps are powers of two: the axis says 64 MB, not 61.0 MB. */
const POWERS = Array.from({ length: 50 }, (_, i) => 2 ** i);

type Now = { current: PlotProps };

function clocks(p: PlotProps, splits: number[]): string[] {
  const long = p.to - p.from > 86400e3;
  const fine = splits.length > 1 && splits[1]! - splits[0]! < 60;
  return splits.map((s) => clock(s * 1e3, p.utc, fine, long));
}

const highest = (curves: Curve[]) =>
  curves.reduce((top, c) => c.points.reduce<number>((m, v) => (v != null && v > m ? v : m), top), 0);

/** Up to the highest point; a bound counts only where it is near. */
export function scaleTop(curves: Curve[]): number {
  const top = highest(curves.filter((c) => !c.loose));
  const bound = highest(curves.filter((c) => c.loose));
  return (bound <= 2 * top ? Math.max(top, bound) : top) || 1;
}

function options(now: Now, width: number): uPlot.Options {
  const { unit, height, slim, curves } = now.current;
  const axis = {
    stroke: css('--dim'),
    grid: { stroke: css('--grid'), width: 1 },
    ticks: { show: false },
    font: `${slim ? 10 : 11}px system-ui, sans-serif`,
  };
  const few = (_u: uPlot, i: number) => now.current.curves[i - 1]!.points.filter((v) => v != null).length < 3;
  return {
    width,
    height,
    legend: { show: false },
    cursor: {
      drag: { x: false, y: false },
      y: false,
      points: { size: 6 },
      sync: { key: 'time', setSeries: false, scales: ['x', null] },
    },
    tzDate: (ts) => (now.current.utc ? uPlot.tzDate(new Date(ts * 1e3), 'Etc/UTC') : new Date(ts * 1e3)),
    scales: {
      x: { time: true, range: () => [now.current.from / 1e3, now.current.to / 1e3] },
      y: { range: () => [0, now.current.top ?? scaleTop(now.current.curves) * 1.08] },
    },
    series: [
      {},
      ...curves.map((c) => ({
        stroke: c.solid ? css('--bg') : css(c.colour),
        width: c.solid ? 0.5 : slim ? 1.25 : 1.5,
        ...(c.fill ? { fill: css(c.solid ? c.colour : '--accent-fill') } : {}),
        ...(c.dash ? { dash: c.dash } : {}),
        points: { show: c.solid ? false : few, size: 4 },
      })),
    ],
    axes: [
      { ...axis, size: slim ? 20 : 26, space: slim ? 80 : 90, values: (_u, splits) => clocks(now.current, splits) },
      {
        ...axis,
        size: slim ? 58 : 72,
        space: slim ? 20 : 22,
        ...(unit.startsWith('bytes') ? { incrs: POWERS } : {}),
        values: (_u, splits) => splits.map((v) => value(v, unit).replace(/\.0+(?=\u2009|%|$)/, '')),
      },
    ],
    padding: slim ? [6, 24, 0, 0] : [8, 30, 0, 0],
    hooks: {
      setCursor: [(u) => now.current.onCursor(u.cursor.idx == null || u.cursor.left! < 0 ? null : stepAt(now.current, u.cursor.idx))],
    },
  };
}

const stepsIn = (p: PlotProps) => Math.max(0, ...p.curves.map((c) => c.points.length));

/* Areas reach to the edges: the first and the last point are there twice. */
const isArea = (p: PlotProps) => p.curves.some((c) => c.solid);
const stepAt = (p: PlotProps, i: number) => (isArea(p) ? Math.max(0, Math.min(stepsIn(p) - 1, i - 1)) : i);

function columns(p: PlotProps): uPlot.AlignedData {
  const xs = Array.from({ length: stepsIn(p) }, (_, i) => (p.from + (i + 0.5) * p.step_ms) / 1e3);
  if (!isArea(p)) return [xs, ...p.curves.map((c) => c.points)];
  const edged = (points: Points) => [points[0] ?? null, ...points, points[points.length - 1] ?? null];
  return [[p.from / 1e3, ...xs, p.to / 1e3], ...p.curves.map((c) => edged(c.points))];
}

/** The boxes over a plot: windows, what is being dragged, and marks. */
class Boxes {
  readonly drag: HTMLElement;
  private readonly a: HTMLElement;
  private readonly b: HTMLElement;
  private marks: HTMLElement[] = [];
  private late: HTMLElement[] = [];

  constructor(private readonly u: uPlot) {
    this.a = this.add('band a');
    this.b = this.add('band b');
    this.drag = this.add('band drag');
    this.drag.hidden = true;
  }

  private add(name: string): HTMLElement {
    const el = document.createElement('div');
    el.className = name;
    this.u.over.append(el);
    return el;
  }

  put(el: HTMLElement, w: Window | null): void {
    if (!w) {
      el.hidden = true;
      return;
    }
    const width = this.u.over.clientWidth;
    const left = Math.max(0, this.u.valToPos(w.from / 1e3, 'x'));
    const right = Math.min(width, this.u.valToPos(w.to / 1e3, 'x'));
    el.hidden = right <= 0 || left >= width;
    el.style.left = `${left}px`;
    el.style.width = `${Math.max(2, right - left)}px`;
  }

  /* The same actions are buttons elsewhere on the page: marks are for the mouse and the finger. */
  private mark(m: Mark): HTMLElement {
    const el = this.add(`mark ${m.kind}`);
    el.title = m.text;
    const x = this.u.valToPos(m.at / 1e3, 'x');
    el.hidden = x < 0 || x > this.u.over.clientWidth;
    el.style.left = `${x}px`;
    el.addEventListener('pointerdown', (e) => e.stopPropagation());
    el.addEventListener('click', () => m.open());
    return el;
  }

  place(p: PlotProps): void {
    this.put(this.a, p.base);
    this.put(this.b, p.sel);
    for (const el of [...this.marks, ...this.late]) el.remove();
    this.marks = p.marks.map((m) => this.mark(m));
    this.late = (p.late ?? []).map((w) => {
      const el = this.add('band late');
      this.put(el, w);
      return el;
    });
  }
}

export function Plot(props: PlotProps) {
  const host = useRef<HTMLDivElement>(null);
  const plot = useRef<{ u: uPlot; boxes: Boxes } | null>(null);
  const now = useRef(props);
  now.current = props;
  const shape = props.curves.map((c) => c.name).join('\n');

  useEffect(() => {
    const u = new uPlot(options(now, host.current!.clientWidth), columns(now.current), host.current!);
    const boxes = new Boxes(u);
    plot.current = { u, boxes };
    const stop = dragging(u, boxes, now);
    const sized = new ResizeObserver(() => {
      u.setSize({ width: host.current!.clientWidth, height: now.current.height });
      boxes.place(now.current);
    });
    sized.observe(host.current!);
    boxes.place(now.current);
    return () => {
      sized.disconnect();
      stop();
      u.destroy();
      plot.current = null;
    };
  }, [props.unit, props.utc, props.dark, shape]);
  // New points go into the plot that is there: a refresh must not end a drag.
  useEffect(() => {
    plot.current!.u.setData(columns(props));
    plot.current!.boxes.place(props);
  }, [props.curves]);
  useEffect(() => plot.current!.boxes.place(props), [props.sel, props.base, props.marks, props.late]);

  return <div ref={host} class="plot" />;
}

function dragging(u: uPlot, boxes: Boxes, now: Now): () => void {
  const off = new AbortController();
  const on = { signal: off.signal };
  const band = boxes.drag;
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
  const point = (e: PointerEvent, clicked: boolean) => {
    const box = u.over.getBoundingClientRect();
    now.current.onPoint?.(stepAt(now.current, u.posToIdx(e.clientX - box.left)), u.posToVal(e.clientY - box.top, 'y'), clicked);
  };
  u.over.addEventListener('pointermove', (e) => {
    point(e, false);
    if (!Number.isNaN(start) && Math.abs(e.clientX - x0) > 3) {
      boxes.put(band, between(e));
      band.dataset['len'] = span(between(e).to - between(e).from);
    }
  }, on);
  u.over.addEventListener('pointerup', (e) => {
    band.hidden = true;
    if (!Number.isNaN(start)) {
      if (Math.abs(e.clientX - x0) > 3) now.current.onSelect(between(e));
      else point(e, true);
    }
    start = NaN;
  }, on);
  u.over.addEventListener('pointercancel', () => {
    band.hidden = true;
    start = NaN;
  }, on);
  u.over.addEventListener('dblclick', () => now.current.onReset(), on);
  return () => off.abort();
}
