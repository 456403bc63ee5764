/* Asks for the overview: everything once, then what is new. */
import { get, url, type Overview } from '../api';
import { useLoad, type Query } from '../query';
import { rangeWindow } from '../state';
import { merge, stepOf, type Held } from './model';

/* Outlives the page, so that coming back from a service shows at once what was there. */
let kept: { key: string; held: Held } | null = null;

/** `epoch` changes when the server was started anew: its numbers mean something else then. */
export function useOverview(range: string, now: number, epoch: number): Query<Held> {
  const w = rangeWindow(range, now);
  const step = stepOf(w.to - w.from);
  const key = `${range} ${epoch}`;
  const mine = kept?.key === key ? kept.held : null;
  const load = async (signal: AbortSignal) => {
    const ask = (since: number | null) =>
      get<Overview>(url('/api/overview', [
        ['from', Math.round(w.from)], ['to', Math.round(w.to)], ['step_ms', step], ...(since == null ? [] : [['since', since] as [string, number]]),
      ]), signal);
    const from = Math.floor(w.from / step) * step;
    const held = (mine && merge(mine, await ask(mine.next), from)) ?? merge(null, await ask(null))!;
    kept = { key, held };
    return held;
  };
  return useLoad(load, key, now, mine);
}
