/* What can be done with the window that was dragged, where it was dragged. */
import { comparePreceding, go, type State, type Window } from './state';

export interface SelectionProps {
  state: State;
  w: Window;
  shown: Window; // the timeline
  oldest: number;
}

/** Plots have an axis on their left and room on their right; see plot.tsx. */
const LEFT = 72;
const RIGHT = 30;

export function SelectionActions({ state, w, shown, oldest }: SelectionProps) {
  const middle = ((w.from + w.to) / 2 - shown.from) / (shown.to - shown.from);
  const at = Math.max(0, Math.min(1, middle));
  return (
    <div class="selection" role="group" aria-label="Selected window"
      style={{ left: `calc(${LEFT}px + (100% - ${LEFT + RIGHT}px) * ${at.toFixed(4)})`, transform: `translateX(${(-100 * at).toFixed(1)}%)` }}
      // The timeline has keys of its own.
      onKeyDown={(e) => e.key !== 'Escape' && e.stopPropagation()}>
      <button type="button" title="Show only this window in the timeline"
        onClick={() => go({ range: `${Math.round(w.from)}-${Math.round(w.to)}`, sel: null })}>Zoom in</button>
      <button type="button" title="Key: d" onClick={() => go(comparePreceding(state, w, oldest))}>Compare with preceding</button>
      <button type="button" title="Key: x" onClick={() => go({ sel: null, zoom: '' })}>Reset</button>
    </div>
  );
}
