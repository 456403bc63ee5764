/* Preferences of this reader, kept in the browser. */
import { useEffect, useState } from 'preact/hooks';

export interface Prefs {
  theme: 'dark' | 'light' | 'auto';
  utc: boolean;
  blind: boolean; // orange and blue instead of red and green
  runtime: boolean | null; // show the Go runtime charts; null: if there is room
}

const KEY = 'sonde';
const dark = matchMedia('(prefers-color-scheme: dark)');

function load(): Prefs {
  const start: Prefs = { theme: 'auto', utc: false, blind: false, runtime: null };
  try {
    return { ...start, ...(JSON.parse(localStorage.getItem(KEY) ?? '{}') as Partial<Prefs>) };
  } catch {
    return start;
  }
}

/** Open by default only if the flame graph keeps most of the screen. */
export const showsRuntime = (p: Prefs) => p.runtime ?? (innerHeight >= 860 && innerWidth >= 900);

export const isDark = (p: Prefs) => (p.theme === 'auto' ? dark.matches : p.theme === 'dark');

export function usePrefs(): [Prefs, (patch: Partial<Prefs>) => void] {
  const [prefs, set] = useState(load);
  const [, redraw] = useState(0);
  useEffect(() => {
    const changed = () => redraw((n) => n + 1);
    dark.addEventListener('change', changed);
    return () => dark.removeEventListener('change', changed);
  }, []);
  document.documentElement.dataset['theme'] = isDark(prefs) ? 'dark' : 'light';
  document.documentElement.dataset['palette'] = prefs.blind ? 'blind' : 'usual';
  return [
    prefs,
    (patch) =>
      set((old) => {
        const next = { ...old, ...patch };
        try {
          localStorage.setItem(KEY, JSON.stringify(next));
        } catch {
          // Private windows may refuse; the choice then lasts until the page is closed.
        }
        return next;
      }),
  ];
}
