/*
 * The state of the page, and its address. The whole state is in the URL fragment, so links share it
 * and back and forward work. Preferences (theme, time zone, palette) are not part of it.
 */
import { useEffect, useState } from 'preact/hooks';

export interface Window {
  from: number;
  to: number;
}

export type View = '' | 'flame' | 'table' | 'both' | 'sandwich';

export interface State {
  service: string; // empty: the overview
  range: string; // '1h' before now, or 'from-to' in milliseconds
  type: string;
  sel: Window | null; // the selected window; null: the whole range
  base: 'prev' | Window | null; // the baseline
  norm: boolean; // compared by shares of the window
  per: '' | 'process'; // compared per process
  view: View;
  q: string;
  fn: string; // the function whose details are shown
  zoom: string; // path hash of the frame zoomed to
  focus: string[];
  hide: string[];
  fold: string[];
  labels: string[];
  group: string; // the label whose values are the first frames
  frames: '' | 'all'; // all: nothing is folded
  only: string; // the language that is shown alone
  lit: string; // the legend's entry that is highlighted
  paused: boolean;
  filter: string;
  sort: string;
}

export const RANGES = ['15m', '1h', '6h', '24h', '7d'];
const SHORTEST = 120e3;
const UNIT: Record<string, number> = { s: 1e3, m: 60e3, h: 3600e3, d: 86400e3 };

export const START: State = {
  service: '',
  range: '1h',
  type: '',
  sel: null,
  base: null,
  norm: false,
  per: '',
  view: '',
  q: '',
  fn: '',
  zoom: '',
  focus: [],
  hide: [],
  fold: [],
  labels: [],
  group: '',
  frames: '',
  only: '',
  lit: '',
  paused: false,
  filter: '',
  sort: '',
};

function parseWindow(text: string | null): Window | null {
  const m = /^(\d{1,15})-(\d{1,15})$/.exec(text ?? '');
  if (!m) return null;
  const from = Number(m[1]);
  const to = Number(m[2]);
  return to > from ? { from, to } : null;
}

export const windowText = (w: Window) => `${Math.round(w.from)}-${Math.round(w.to)}`;

/** Length of a relative range in milliseconds; 0 when the range is fixed. */
export function rangeLength(range: string): number {
  const m = /^(\d{1,6})([smhd])$/.exec(range);
  return m ? Number(m[1]) * UNIT[m[2]!]! : 0;
}

/**
 * A relative range does not reach back further than the store (`oldest`): on the first day it would
 * be mostly empty.
 */
export function rangeWindow(range: string, now: number, oldest = 0): Window {
  const fixed = parseWindow(range);
  if (fixed) return fixed;
  const from = now - (rangeLength(range) || 3600e3);
  return { from: Math.max(from, Math.min(oldest, now - SHORTEST)), to: now };
}

/**
 * The window for sparklines: about 60 steps of whole intervals, so every step has the same number of
 * collections and a steady rate looks steady.
 */
export function sparkWindow(w: Window, interval: number): Window & { points: number } {
  const step = Math.max(1, Math.ceil((w.to - w.from) / 60 / interval)) * interval;
  const points = Math.min(60, Math.max(2, Math.ceil((w.to - w.from) / step)));
  return { from: w.to - points * step, to: w.to, points };
}

export function parse(hash: string): State {
  const cut = hash.indexOf('?');
  const path = hash.replace(/^#\/?/, '').split('?')[0]!;
  const p = new URLSearchParams(cut < 0 ? '' : hash.slice(cut + 1));
  const range = p.get('range') ?? '';
  const view = p.get('view') ?? '';
  const base = p.get('base');
  let service = '';
  try {
    if (path.startsWith('s/')) service = decodeURIComponent(path.slice(2));
  } catch {
    // A mangled link leads to the overview.
  }
  return {
    service,
    range: rangeLength(range) || parseWindow(range) ? range : START.range,
    type: p.get('type') ?? '',
    sel: parseWindow(p.get('sel')),
    base: base === 'prev' ? 'prev' : parseWindow(base),
    norm: p.get('norm') === '1',
    per: p.get('per') === 'process' ? 'process' : '',
    view: ['flame', 'table', 'both', 'sandwich'].includes(view) ? (view as View) : '',
    q: p.get('q') ?? '',
    fn: p.get('fn') ?? '',
    zoom: p.get('zoom') ?? '',
    focus: p.getAll('focus'),
    hide: p.getAll('hide'),
    fold: p.getAll('fold'),
    labels: p.getAll('label'),
    group: p.get('group') ?? '',
    frames: p.get('frames') === 'all' ? 'all' : '',
    only: p.get('only') ?? '',
    lit: p.get('lit') ?? '',
    paused: p.get('paused') === '1',
    filter: p.get('filter') ?? '',
    sort: p.get('sort') ?? '',
  };
}

export function format(s: State): string {
  const p = new URLSearchParams();
  const put = (key: string, text: string) => text && p.append(key, text);
  put('range', s.range === START.range ? '' : s.range);
  put('type', s.type);
  put('sel', s.sel ? windowText(s.sel) : '');
  put('base', s.base === 'prev' ? 'prev' : s.base ? windowText(s.base) : '');
  put('norm', s.norm ? '1' : '');
  put('per', s.per);
  put('view', s.view);
  put('q', s.q);
  put('fn', s.fn);
  put('zoom', s.zoom);
  for (const f of s.focus) put('focus', f);
  for (const f of s.hide) put('hide', f);
  for (const f of s.fold) put('fold', f);
  for (const l of s.labels) put('label', l);
  put('group', s.group);
  put('frames', s.frames);
  put('only', s.only);
  put('lit', s.lit);
  put('paused', s.paused ? '1' : '');
  put('filter', s.filter);
  put('sort', s.sort);
  const query = p.toString().replace(/%3A/g, ':').replace(/%2F/g, '/');
  const path = s.service ? `#/s/${encodeURIComponent(s.service)}` : '#/';
  return query ? `${path}?${query}` : path;
}

/** A service from the overview, over the same range. */
export const serviceLink = (service: string, range: string, type = '') => format({ ...START, service, range, type });

const listeners = new Set<() => void>();

/** Changes the state; use `replace` while typing. */
export function go(patch: Partial<State>, replace = false): void {
  const next = format({ ...parse(location.hash), ...patch });
  if (next === format(parse(location.hash))) return;
  if (replace) history.replaceState(null, '', next);
  else history.pushState(null, '', next);
  for (const tell of listeners) tell();
}

export function useRoute(): State {
  const [state, set] = useState(() => parse(location.hash));
  useEffect(() => {
    const read = () => set(parse(location.hash));
    listeners.add(read);
    window.addEventListener('popstate', read);
    return () => {
      listeners.delete(read);
      window.removeEventListener('popstate', read);
    };
  }, []);
  return state;
}

/** The baseline: the preceding window of the same length, or the selected one. */
export function baseline(base: State['base'], w: Window): Window | null {
  if (base === 'prev') return { from: w.from - (w.to - w.from), to: w.from };
  return base;
}

/**
 * Compares with the preceding window. On the first day there is none before the whole range: then
 * compares its newer half with the older one.
 */
export function comparePreceding(s: State, w: Window, oldest: number): Partial<State> {
  const half = { from: (Math.max(w.from, oldest) + w.to) / 2, to: w.to };
  return { base: 'prev', zoom: '', sel: !s.sel && w.from <= oldest ? half : s.sel };
}
