/* One profile type over time, and the keys that move the window. */
import type { ComponentChildren } from 'preact';
import { useMemo, useRef } from 'preact/hooks';
import type { Series } from './api';
import { time, value } from './format';
import { Plot, type Chosen } from './plot';
import { curve, listed, stretches } from './series';
import { rateUnit, typeText } from './types';

export interface TimelineProps extends Chosen {
  series: Series;
  utc: boolean;
  dark: boolean;
  picking: 'A' | 'B';
  type: string;
  children?: ComponentChildren; // over the plot
}

const HEIGHT = 132;

export function Timeline(props: TimelineProps) {
  const { series: s, type } = props;
  const readout = useRef<HTMLSpanElement>(null);
  const unit = s.mode === 'delta' ? rateUnit(type) : s.unit;
  const curves = useMemo(
    () => [{ name: type, points: curve(s.mode, s.points, s.step_ms), colour: '--accent', fill: true }],
    [s, type],
  );
  const late = useMemo(() => stretches(s), [s]);
  const read = (i: number | null) => {
    readout.current!.textContent =
      i == null ? '' : `${time(s.from + (i + 0.5) * s.step_ms, props.utc)}  ${value(curves[0]!.points[i], unit)}`;
  };
  return (
    <div
      class="timeline"
      data-picking={props.picking}
      tabIndex={0}
      role="group"
      aria-label={`${typeText(type).title} over time. Arrow keys move the window, Shift with arrow keys resizes it, Escape resets it.`}
      onKeyDown={(e) => keyed(e, props)}
    >
      <div data-testid="timeline">
        <Plot {...props} from={s.from} to={s.to} step_ms={s.step_ms} curves={curves} late={late} unit={unit} height={HEIGHT} onCursor={read} />
      </div>
      {props.children}
      {late.length > 0 && (
        <p class="latenote dim">
          Samples of {listed(late, (w) => `${time(w.from, props.utc)} to ${time(w.to, props.utc)}`)} came late: they are spread evenly over that time.
        </p>
      )}
      {props.series.damaged && (
        <p class="latenote dim">Part of this time is damaged on disk and missing here: see <code>sonde store check</code>.</p>
      )}
      <span class="readout mono" ref={readout} aria-hidden="true" />
    </div>
  );
}

function keyed(e: KeyboardEvent, p: TimelineProps): void {
  const all = { from: p.series.from, to: p.series.to };
  const step = Math.max(p.series.step_ms, (all.to - all.from) / 60);
  const dir = e.key === 'ArrowLeft' ? -1 : e.key === 'ArrowRight' ? 1 : 0;
  if (e.key === 'Escape') p.onReset();
  else if (dir) {
    // If there is no window yet, the first key selects the last quarter.
    const w = p.sel ?? { from: all.to - (all.to - all.from) / 4, to: all.to };
    const next = e.shiftKey
      ? { from: w.from, to: Math.max(w.from + step, w.to + dir * step) }
      : { from: w.from + dir * step, to: w.to + dir * step };
    p.onSelect(p.sel ? next : w);
  } else return;
  e.preventDefault();
  e.stopPropagation();
}
