/* The frame around all pages: header, clock, keyboard shortcuts, live region. */
import { render } from 'preact';
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { busy, isAway, type Health, type Registry } from './api';
import type { Theme } from './flame/draw';
import { time, zone } from './format';
import { Overview } from './overview';
import { HealthLine } from './overview/health';
import { copy, Help } from './parts';
import { isDark, showsRuntime, usePrefs } from './prefs';
import { useAway, useQuery, type Query } from './query';
import { ServicePage } from './service';
import { comparePreceding, go, parse, RANGES, rangeLength, rangeWindow, useRoute, type State } from './state';
import { isPicture, learn } from './types';
import './theme.css';

const css = (name: string) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

function flameTheme(dark: boolean, blind: boolean): Theme {
  return {
    dark,
    blind,
    bg: css('--bg'),
    fg: css('--bar-text'),
    faint: css('--faint'),
    faintText: css('--dim'),
    dust: css('--dust'),
    hit: css('--hit'),
  };
}

/** The server's clock: advances by its interval while live, stands still while paused or fixed. */
function useNow(health: Health | null, live: boolean): number {
  // Measured when a response arrives; it only goes stale later.
  const skew = useMemo(() => (health ? health.now - Date.now() : 0), [health]);
  const offset = useRef(0);
  if (Math.abs(skew - offset.current) > 2000) offset.current = skew;
  const [ticked, set] = useState(() => Date.now());
  const every = Math.max(1000, health?.interval_ms ?? 15000);
  const fresh = useRef(true);
  useEffect(() => {
    // The first page is current already; one resumed from a pause is not.
    if (live && !fresh.current) set(Date.now());
    fresh.current = false;
  }, [live]);
  useEffect(() => {
    if (!live) return;
    // Do not ask a slow server again before it has answered.
    const timer = setInterval(() => document.visibilityState === 'visible' && !busy() && set(Date.now()), every);
    return () => clearInterval(timer);
  }, [live, every]);
  // Collections are stamped with whole intervals, so windows end on one.
  const now = ticked + offset.current;
  return now - (now % every);
}

/** The registry: requested once, and again with the next refresh until the server responds. */
function useRegistry(beat: number): Query<Registry> {
  const learned = useRef(false);
  const asked = useRef(beat);
  if (!learned.current) asked.current = beat;
  return useQuery<Registry>('/api/types', (registry) => {
    learn(registry);
    learned.current = true;
    return registry;
  }, asked.current);
}

/* While nobody answers. */
const KNOCK_EVERY = 3000;

/** Counts the starts of the server that this page has seen. */
function useEpoch(health: Health | null): number {
  const seen = useRef({ started: 0, epoch: 0 });
  const started = health?.started ?? 0;
  if (started && started !== seen.current.started)
    seen.current = { started, epoch: seen.current.started ? seen.current.epoch + 1 : 0 };
  return seen.current.epoch;
}

function Away({ since, utc }: { since: number; utc: boolean }) {
  return (
    <div class="away" role="alert">
      <b>sonde is not responding.</b> Is it still running? Start it with: <code>sonde run</code>.{' '}
      {since > 0 && <>This page shows data up to {time(since, utc)}. </>}It resumes when sonde is back.
    </div>
  );
}

function shift(s: State, now: number, oldest: number, by: number): Partial<State> {
  const w = s.sel ?? rangeWindow(s.range, now, oldest);
  const d = (w.to - w.from) * by;
  return { sel: { from: w.from + d, to: w.to + d }, zoom: '' };
}

/** An error of a server that is there: then it is as good as it gets. */
const answered = (error: Error | null) => !!error && !isAway(error);

function App() {
  const state = useRoute();
  const [prefs, setPrefs] = usePrefs();
  const [help, setHelp] = useState(false);
  const [said, say] = useState('');
  const [beat, setBeat] = useState(0);
  const health = useQuery<Health>('/api/health', undefined, beat);
  const registry = useRegistry(beat);
  const relative = rangeLength(state.range) > 0;
  const away = useAway();
  const live = relative && !state.paused && !away;
  const now = useNow(health.data, live);
  const epoch = useEpoch(health.data);
  const opened = useRef(now);
  useEffect(() => {
    if (now !== opened.current) setBeat(now);
  }, [now]);
  useEffect(() => {
    if (!away) return;
    const timer = setInterval(() => setBeat(Date.now()), KNOCK_EVERY);
    return () => clearInterval(timer);
  }, [away]);
  const oldest = health.data?.store.oldest ?? 0;
  const interval = health.data?.interval_ms ?? 15000;
  const dark = isDark(prefs);
  const theme = useMemo(() => flameTheme(dark, prefs.blind), [dark, prefs.blind]);

  useEffect(() => {
    document.title = state.service ? `${state.service} · sonde` : 'sonde';
  }, [state.service]);
  useEffect(() => {
    if (!said) return;
    const timer = setTimeout(() => say(''), 4000);
    return () => clearTimeout(timer);
  }, [said]);

  const keyed = useRef<(e: KeyboardEvent) => void>(() => {});
  keyed.current = (e) => {
    const on = e.target as HTMLElement;
    // Check the dialog itself: our state lags behind its closing.
    if (e.ctrlKey || e.metaKey || e.altKey || document.querySelector('dialog[open]')) return;
    if (/^(INPUT|SELECT|TEXTAREA)$/.test(on.tagName)) {
      if (e.key === 'Escape') on.blur();
      return;
    }
    const views = { 1: 'table', 2: 'both', 3: 'flame', 4: 'sandwich' } as Record<string, State['view']>;
    const everywhere: Record<string, () => void> = {
      '?': () => setHelp(true),
      '/': () => document.getElementById('search')?.focus(),
      o: () => go({ ...parse(''), range: state.range }),
      l: () => relative && go({ paused: !state.paused }, true),
      t: () => setPrefs({ theme: dark ? 'light' : 'dark' }),
      u: () => setPrefs({ utc: !prefs.utc }),
    };
    const service: Record<string, () => void> = {
      g: () => setPrefs({ runtime: !showsRuntime(prefs) }),
      // A snapshot has no preceding window.
      d: () => !isPicture(state.type) && go(state.base ? { base: null, zoom: '' } : comparePreceding(state, state.sel ?? rangeWindow(state.range, now, oldest), oldest)),
      x: () => go({ sel: null, base: null, zoom: '' }),
      '[': () => go(shift(state, now, oldest, -1)),
      ']': () => go(shift(state, now, oldest, 1)),
      y: async () => say((await copy(location.href)) ? 'Link copied' : 'Could not copy; use the address bar instead'),
    };
    const run = everywhere[e.key] ?? (state.service ? service[e.key] : undefined);
    if (run) run();
    else if (state.service && views[e.key]) go({ view: views[e.key]! });
    else return;
    e.preventDefault();
  };
  useEffect(() => {
    const on = (e: KeyboardEvent) => keyed.current(e);
    addEventListener('keydown', on);
    return () => removeEventListener('keydown', on);
  }, []);

  return (
    <>
      <a class="skip" href="#main" onClick={(e) => { e.preventDefault(); document.querySelector<HTMLElement>('main a, main button')?.focus(); }}>Skip to content</a>
      <header>
        <a class="brand" href={state.range === '1h' ? '#/' : `#/?range=${state.range}`} aria-label="sonde, overview">
          <svg viewBox="0 0 16 16" aria-hidden="true"><path class="l1" d="M1 2h14v3H1z" /><path class="l2" d="M1 6.5h9v3H1z" /><path class="l3" d="M1 11h4.5v3H1z" /></svg>
          sonde
        </a>
        {state.service && <span class="where"><span class="dim" aria-hidden="true">/</span> <b>{state.service}</b></span>}
        <span class="grow" />
        <RangePicker state={state} utc={prefs.utc} />
        <button type="button" class="live" aria-pressed={live} disabled={!relative || away} title={away ? 'sonde is not responding' : relative ? 'Key: l' : 'A fixed range does not update'}
          onClick={() => go({ paused: !state.paused }, true)}>
          <i aria-hidden="true" /> <span class="text">{live ? 'Live' : away ? 'Away' : 'Paused'}</span>
        </button>
        <button type="button" class="quiet" title={`Times are shown in ${zone(prefs.utc)}. Key: u`} aria-label={`Time zone ${zone(prefs.utc)}`} onClick={() => setPrefs({ utc: !prefs.utc })}>
          {prefs.utc ? 'UTC' : zone(false).replace(/ \(.*/, '').split('/').pop()!.replace(/_/g, ' ')}
        </button>
        <button type="button" class="quiet icon" aria-label={dark ? 'Light theme' : 'Dark theme'} title="Key: t" onClick={() => setPrefs({ theme: dark ? 'light' : 'dark' })}>
          <span aria-hidden="true">{dark ? '☀' : '☾'}</span>
        </button>
        <button type="button" class="quiet icon" aria-label="Keyboard shortcuts" title="Key: ?" onClick={() => setHelp(true)}><span aria-hidden="true">?</span></button>
      </header>
      {away && <Away since={health.data?.now ?? 0} utc={prefs.utc} />}
      {!state.service ? (
        <Overview {...{ state, now, health: health.data, ready: !!registry.data || answered(registry.error), epoch, utc: prefs.utc, dark }} />
      ) : (!health.data && !answered(health.error)) || (!registry.data && !answered(registry.error)) ? (
        <main id="main" />
      ) : (
        <>
          {/* It needs the age of the store to know how far back to ask, and the registry for names. */}
          <ServicePage key={state.service} {...{ state, now, oldest, interval, prefs, setPrefs, theme, say }} features={health.data?.features ?? null} />
          {health.data && <footer><HealthLine health={health.data} /></footer>}
        </>
      )}
      <div class={said ? 'toast on' : 'toast'} role="status" aria-live="polite">{said}</div>
      {help && <Help close={() => setHelp(false)} />}
    </>
  );
}

function RangePicker({ state, utc }: { state: State; utc: boolean }) {
  const fixed = !rangeLength(state.range);
  const w = rangeWindow(state.range, 0);
  const known = RANGES.includes(state.range);
  return (
    <select aria-label="Time range" value={state.range} onChange={(e) => go({ range: e.currentTarget.value, sel: null, base: null })}>
      {!known && <option value={state.range}>{fixed ? `${time(w.from, utc)} – ${time(w.to, utc)}` : `last ${state.range}`}</option>}
      {RANGES.map((r) => <option value={r}>last {r.replace(/(\d+)/, '$1 ').replace(/m$/, 'min')}</option>)}
    </select>
  );
}

render(<App />, document.getElementById('app')!);
