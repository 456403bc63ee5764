/*
 * Requests as component state. A new address cancels the previous request; the old response stays on
 * screen until the new one arrives; `slow` turns on after 200 ms, when waiting becomes noticeable. What
 * failed because the server was away is asked for again when it is back.
 */
import { useEffect, useRef, useState } from 'preact/hooks';
import { get, isAway, watchReach } from './api';

interface Held<T> {
  data: T | null;
  error: Error | null;
  loading: boolean;
  slow: boolean;
}

export interface Query<T> extends Held<T> {
  retry(): void;
}

/** Whether the last request found nobody. */
export function useAway(): boolean {
  const [away, set] = useState(false);
  useEffect(() => watchReach((there) => set(!there)), []);
  return away;
}

/**
 * Loads what `identity` names, null for nothing. A new `tick` loads it again, unless that is under way
 * already; `first` is shown until then.
 */
export function useLoad<T>(load: (signal: AbortSignal) => Promise<T>, identity: string | null, tick = 0, first: T | null = null): Query<T> {
  const [held, set] = useState<Held<T>>({ data: first, error: null, loading: identity != null, slow: false });
  const [again, setAgain] = useState(0);
  const how = useRef(load);
  how.current = load;
  const running = useRef<{ identity: string; control: AbortController } | null>(null);
  const retry = () => {
    running.current?.control.abort();
    running.current = null;
    setAgain((n) => n + 1);
  };

  useEffect(() => {
    if (identity == null) {
      running.current?.control.abort();
      running.current = null;
      set({ data: null, error: null, loading: false, slow: false });
      return;
    }
    if (running.current?.identity === identity) return;
    running.current?.control.abort();
    const control = new AbortController();
    const mine = { identity, control };
    running.current = mine;
    set((h) => ({ ...h, loading: true }));
    const timer = setTimeout(() => running.current === mine && set((h) => ({ ...h, slow: true })), 200);
    const end = (change: (h: Held<T>) => Held<T>) => {
      clearTimeout(timer);
      if (control.signal.aborted) return;
      running.current = null;
      set(change);
    };
    how.current(control.signal).then(
      (data) => end(() => ({ data, error: null, loading: false, slow: false })),
      (error: Error) => end((h) => ({ data: h.data, error, loading: false, slow: false })),
    );
  }, [identity, again, tick]);
  useEffect(() => () => running.current?.control.abort(), []);
  useEffect(() => (isAway(held.error) ? watchReach((there) => there && retry()) : undefined), [held.error]);

  return { ...held, retry };
}

/** A new `tick` repeats the request. */
export function useQuery<R, T = R>(address: string | null, decode?: (raw: R) => T, tick = 0): Query<T> {
  const load = async (signal: AbortSignal) => {
    const raw = await get<R>(address!, signal);
    return decode ? decode(raw) : (raw as unknown as T);
  };
  return useLoad(load, address, tick);
}
