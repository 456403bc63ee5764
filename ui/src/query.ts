/*
 * One request as component state. A new address cancels the previous request; the old response stays
 * on screen until the new one arrives; `slow` turns on after 200 ms, when waiting becomes noticeable.
 */
import { useEffect, useRef, useState } from 'preact/hooks';
import { get } from './api';

export interface Query<T> {
  data: T | null;
  error: Error | null;
  loading: boolean;
  slow: boolean;
  retry(): void;
}

interface Held<T> {
  data: T | null;
  error: Error | null;
  loading: boolean;
  slow: boolean;
}

/** A new `tick` repeats the request. */
export function useQuery<R, T = R>(
  address: string | null,
  decode?: (raw: R) => T,
  tick = 0,
): Query<T> {
  const [held, set] = useState<Held<T>>({ data: null, error: null, loading: !!address, slow: false });
  const [again, setAgain] = useState(0);
  const how = useRef(decode);
  how.current = decode;

  useEffect(() => {
    if (!address) {
      set({ data: null, error: null, loading: false, slow: false });
      return;
    }
    const control = new AbortController();
    set((h) => ({ ...h, loading: true }));
    const timer = setTimeout(() => set((h) => ({ ...h, slow: true })), 200);
    get<R>(address, control.signal).then(
      (raw) => {
        clearTimeout(timer);
        if (control.signal.aborted) return;
        const data = how.current ? how.current(raw) : (raw as unknown as T);
        set({ data, error: null, loading: false, slow: false });
      },
      (error: Error) => {
        clearTimeout(timer);
        if (control.signal.aborted) return;
        set((h) => ({ data: h.data, error, loading: false, slow: false }));
      },
    );
    return () => {
      clearTimeout(timer);
      control.abort();
    };
  }, [address, again, tick]);

  return { ...held, retry: () => setAgain((n) => n + 1) };
}
