/* One service: profile types, timeline, runtime, and the window's profile as flame graph, table or sandwich. */
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { url, type Feature, type Labels, type Params, type RawFlame, type Series, type Services, type Targets, type TypeSeries } from './api';
import { marksOf, OomBanner, useEvents } from './events';
import type { Theme } from './flame/draw';
import { cut, decode, findPath, functions, normalised, pathHash, search, type Found, type Profile } from './flame/layout';
import { Legend } from './flame/legend';
import { litNames } from './flame/origin';
import { Crumbs, FlameView } from './flame/view';
import { percent, shortName, span, time, value } from './format';
import { FunctionView } from './function';
import { imageMenu } from './images';
import { copy, Empty, Failure, Menu, Progress, Spark, type MenuAt } from './parts';
import type { Chosen } from './plot';
import { showsRuntime, type Prefs } from './prefs';
import { perProcess, useProcesses } from './processes';
import { useQuery } from './query';
import { Reshape, useReshaped } from './reshape';
import { Runtime } from './runtime';
import { SelectionActions } from './selection';
import { curve, latest } from './series';
import { baseline, comparePreceding, go, rangeWindow, sparkWindow, type State, type View, type Window } from './state';
import { startMarks } from './starts';
import { Table } from './table';
import { Timeline } from './timeline';
import { cards, countedBy, familyOf, firstType, isPicture, isRuntime, kindOf, pictures, rateUnit, typeText, unitOf, variantName, type Card } from './types';
import { whyNot, WhyNotCards, WhyNotPage, type WhyNot } from './whynot';

const MAX_NODES = 200000;
const LABELS_EVERY = 60e3;
export interface ServiceProps {
  state: State;
  now: number;
  oldest: number; // of the store
  interval: number;
  features: Feature[] | null;
  prefs: Prefs;
  setPrefs(patch: Partial<Prefs>): void;
  theme: Theme;
  say(text: string): void;
}

const windowParams = (w: Window, prefix = ''): Params => [
  [`${prefix}from`, Math.round(w.from)],
  [`${prefix}to`, Math.round(w.to)],
];

/** One button per measure: its selected type, or else its most useful one. */
function TypeCard({ card, all, step, current }: { card: Card<TypeSeries>; all: TypeSeries[]; step: number; current: string }) {
  const t = card.types.find((x) => x.type === current) ?? card.types[0]!;
  const rate = t.mode === 'delta';
  const counter = all.find((x) => x.type === countedBy(t.type, all))!;
  const points = curve(t.mode, counter.series, step);
  const { title, help } = typeText(t.type);
  return (
    <button type="button" class="type" aria-pressed={t.type === current} title={help} onClick={() => go({ type: t.type, zoom: '' })}>
      <span class="typename">{title}</span>
      <span class="typevalue">{value(latest(points, rate), rate ? rateUnit(t.type) : unitOf(t.type))}</span>
      <Spark points={points} />
    </button>
  );
}

function TypeCards({ types, lacking, step, current }: { types: TypeSeries[]; lacking: WhyNot[]; step: number; current: string }) {
  const all = cards(types);
  const groups = [...new Set(all.map((c) => c.group))];
  return (
    <div class="types" role="group" aria-label="Profile type">
      {groups.map((g) => {
        const mine = all.filter((c) => c.group === g);
        return (
          <div class="typegroup" role="group" aria-label={g} style={{ flexGrow: mine.length }}>
            {mine.map((c) => <TypeCard key={c.types[0]!.type} card={c} all={types} step={step} current={current} />)}
          </div>
        );
      })}
      <WhyNotCards all={lacking} current={current} />
    </div>
  );
}

/** Variants of the same measure: bytes or objects, all goroutines or only waiting ones. */
function Variants({ types, current }: { types: TypeSeries[]; current: string }) {
  const same = isPicture(current) ? pictures(types)
    : (cards(types).find((c) => c.types.some((t) => t.type === current))?.types ?? []);
  if (same.length < 2) return null;
  return (
    <span class="seg" role="group" aria-label="Variant">
      {same.map((t) => (
        <button type="button" aria-pressed={t.type === current} title={typeText(t.type).help} onClick={() => go({ type: t.type })}>
          {variantName(t.type)}
        </button>
      ))}
    </span>
  );
}

function LabelFilter({ service, w, chosen, utc }: { service: string; w: Window; chosen: string[]; utc: boolean }) {
  const [open, setOpen] = useState(false);
  const box = useRef<HTMLDivElement>(null);
  const labels = useQuery<Labels>(open ? url('/api/labels', [['service', service], ...windowParams(w)]) : null);
  useEffect(() => {
    if (!open) return;
    const outside = (e: Event) => !box.current!.contains(e.target as Node) && setOpen(false);
    addEventListener('pointerdown', outside);
    return () => removeEventListener('pointerdown', outside);
  }, [open]);
  const toggle = (l: string) =>
    go({ labels: chosen.includes(l) ? chosen.filter((c) => c !== l) : [...chosen, l], zoom: '' });
  const keys = (labels.data?.labels ?? []).slice().sort((a, b) => Number(b.key === 'process.pid') - Number(a.key === 'process.pid'));
  return (
    <div class="pop" ref={box} onKeyDown={(e) => { if (e.key === 'Escape' && open) { setOpen(false); e.stopPropagation(); } }}>
      <button type="button" aria-expanded={open} onClick={() => setOpen(!open)}>Processes and labels</button>
      {open && (
        <div class="popbox">
          {labels.error && <Failure error={labels.error} retry={labels.retry} />}
          {labels.slow && <p class="dim">Loading…</p>}
          {labels.data && !keys.length && <p class="dim">No labels in this window.</p>}
          {keys.map((k) => (
            <fieldset>
              <legend class="mono">{k.key === 'process.pid' ? 'process' : k.key}</legend>
              {k.values.slice(0, 100).map((v) => {
                const l = `${k.key}=${v.value}`;
                return (
                  <label>
                    <input type="checkbox" checked={chosen.includes(l)} onChange={() => toggle(l)} />
                    <span class="mono">{v.value}</span>
                    {k.key === 'process.pid' && <span class="dim">{time(v.first, utc)} – {time(v.last, utc)}</span>}
                  </label>
                );
              })}
              {k.values.length > 100 && <p class="dim">and {k.values.length - 100} more</p>}
            </fieldset>
          ))}
        </div>
      )}
    </div>
  );
}

function Chips({ state }: { state: State }) {
  const lists: [keyof Pick<State, 'labels' | 'focus' | 'hide' | 'fold'>, string][] = [
    ['labels', ''], ['focus', 'only '], ['hide', 'without '], ['fold', 'collapsed '],
  ];
  const chips = lists.flatMap(([key, word]) => state[key].map((name) => ({ key, word, name })));
  if (!chips.length) return null;
  return (
    <div class="chips" role="group" aria-label="Filters">
      {chips.map(({ key, word, name }) => (
        <button
          type="button"
          class="chip"
          title={`Remove: ${word}${name}`}
          onClick={() => go({ [key]: state[key].filter((n) => n !== name), zoom: '' })}
        >
          <span class="dim">{word}</span><span class="mono">{key === 'labels' ? name : shortName(name)}</span> ×
        </button>
      ))}
    </div>
  );
}

interface CompareProps {
  state: State;
  w: Window;
  base: Window | null;
  oldest: number;
  prefs: Prefs;
  picking: 'A' | 'B';
  usual: string; // what values are when nothing is normalised: per second, or averages
  processes: [number, number] | null; // of B and A, where compared per process
  setPicking(p: 'A' | 'B'): void;
  setPrefs(patch: Partial<Prefs>): void;
}

function WindowLine(c: CompareProps) {
  const { state, w, base, prefs } = c;
  const text = (x: Window) => `${time(x.from, prefs.utc)} – ${time(x.to, prefs.utc)}`;
  const pick = (which: 'A' | 'B', x: Window) => (
    <button type="button" class={`ab ${which.toLowerCase()}`} aria-pressed={c.picking === which}
      title={`The next drag on the timeline sets ${which}`} onClick={() => c.setPicking(which)}>
      <b>{which}</b> {text(x)} <span class="dim">{span(x.to - x.from)}</span>
    </button>
  );
  if (isPicture(state.type) && state.sel)
    return (
      <div class="windowline">
        <span class="windowtext">{typeText(state.type).title} at <b>{time(w.from, prefs.utc)}</b> <span class="dim">{typeText(state.type).help}</span></span>
        <button type="button" class="primary" onClick={() => go({ type: '', sel: null, labels: [], zoom: '' })}>Back to profiles</button>
      </div>
    );
  return (
    <div class="windowline">
      {base ? (
        <>
          {pick('A', base)}
          <span class="dim" aria-hidden="true">→</span>
          {pick('B', w)}
          <span class="seg" role="group" aria-label="Comparison">
            <button type="button" aria-pressed={!state.norm && !state.per} title={`Values ${c.usual} of all processes`}
              onClick={() => go({ norm: false, per: '' })}>{c.usual}</button>
            <button type="button" aria-pressed={!state.norm && !!state.per} title={`Values ${c.usual}, divided by the average number of processes in each window`}
              onClick={() => go({ norm: false, per: 'process' })}>per process</button>
            <button type="button" aria-pressed={state.norm} title="Share of each window, in percent" onClick={() => go({ norm: true, per: '' })}>share</button>
          </span>
          {c.processes && <span class="dim nowrap">{c.processes[1].toFixed(1)} → {c.processes[0].toFixed(1)} processes</span>}
          <button type="button" class="legend" aria-pressed={prefs.blind} title="Orange and blue instead of red and green"
            onClick={() => c.setPrefs({ blind: !prefs.blind })}>
            <i class="sw better" /> less <i class="sw worse" /> more <span class="sr">colour-blind palette</span>
          </button>
          <button type="button" onClick={() => { go({ base: null, zoom: '' }); c.setPicking('B'); }}>Stop comparing</button>
        </>
      ) : (
        <>
          <span class="windowtext">{state.sel ? '' : <span class="dim">whole range </span>}{text(w)} <span class="dim">{span(w.to - w.from)}{c.usual === 'average' && ', average'}</span></span>
          {!state.sel && <button type="button" class="primary" title="Key: d" onClick={() => go(comparePreceding(state, w, c.oldest))}>Compare with preceding</button>}
          <button type="button" title="Drag twice: first the baseline A, then the window B"
            onClick={() => { go(comparePreceding(state, w, c.oldest)); c.setPicking('A'); }}>Compare A and B…</button>
        </>
      )}
    </div>
  );
}

function useActions(state: State, p: Profile | null, say: (t: string) => void, setMenu: (m: MenuAt | null) => void) {
  const add = (list: string[], name: string) => (list.includes(name) ? list : [...list, name]);
  const acts: [string, string, (fn: string) => void][] = [
    ['s', 'Details: curve, lines, callers, callees', (fn) => go({ fn, view: 'sandwich' })],
    ['f', 'Focus on stacks through it', (fn) => go({ focus: add(state.focus, fn), zoom: '' })],
    ['h', 'Hide stacks through it', (fn) => go({ hide: add(state.hide, fn), zoom: '' })],
    ['c', 'Collapse its callees', (fn) => go({ fold: add(state.fold, fn), zoom: '' })],
    ['q', 'Search for it', (fn) => go({ q: fn })],
    ['i', 'Copy name', async (fn) => say((await copy(fn)) ? `Copied ${fn}` : 'The browser denied access to the clipboard')],
  ];
  const key = (k: string, fn: string) => {
    const act = acts.find(([a]) => a === k);
    if (!act || !p || fn === p.names[p.name[0]!]) return false;
    act[2](fn);
    return true;
  };
  const menu = (fn: string, x: number, y: number) => {
    if (p && fn !== p.names[p.name[0]!])
      setMenu({ title: fn, x, y, items: acts.map(([k, text, run]) => ({ key: k, text, run: () => run(fn) })) });
  };
  return { key, menu };
}

function SearchBox({ q, found, wrong }: { q: string; found: Found | null; wrong: string }) {
  return (
    <div class="searchbox">
      <input
        type="search"
        id="search"
        placeholder="Search, or /regex/"
        aria-label="Search functions by text or /regular expression/"
        aria-keyshortcuts="/"
        aria-invalid={!!wrong}
        value={q}
        onInput={(e) => go({ q: e.currentTarget.value }, true)}
      />
      <span class={wrong ? 'warn' : 'dim'} role="status">
        {wrong || (found ? `${percent(found.weight, 1)} in ${found.functions} ${found.functions === 1 ? 'function' : 'functions'}` : '')}
      </span>
    </div>
  );
}

/** Of a comparison both: pprof itself subtracts one from the other. */
function PprofLinks({ stream, w, base }: { stream: Params; w: Window; base: Window | null }) {
  const link = (text: string, x: Window, title: string) => (
    <a class="button" href={url('/api/pprof', [...stream, ...windowParams(x)])} download title={title}>{text}</a>
  );
  if (!base) return link('pprof', w, 'Download this window as a pprof file');
  const how = 'compare both with: go tool pprof -diff_base A.pb.gz B.pb.gz';
  return <>{link('pprof A', base, `Download the baseline; ${how}`)}{link('pprof B', w, `Download the window; ${how}`)}</>;
}

export const narrow = () => innerWidth < 900;

export function ServicePage(props: ServiceProps) {
  const { state, now, prefs, theme, say } = props;
  const [picking, setPicking] = useState<'A' | 'B'>('B');
  const [menu, setMenu] = useState<MenuAt | null>(null);
  const range = rangeWindow(state.range, now, props.oldest);
  const spark = sparkWindow(range, props.interval);
  const w = state.sel ?? range;
  const base = baseline(state.base, w);
  // The baseline may lie before the range: the timeline then reaches back to it.
  const shown = base ? { from: Math.min(range.from, base.from), to: Math.max(range.to, base.to) } : range;

  const services = useQuery<Services>(url('/api/services', [['service', state.service], ...windowParams(spark), ['points', spark.points]]));
  const mine = services.data?.services.find((s) => s.service === state.service);
  const types = mine?.types ?? [];
  const type = (isRuntime(state.type) ? '' : state.type) || firstType(types);
  const has = (t: string) => types.some((x) => x.type === t);
  const targets = useQuery<Targets>(url('/api/targets', [['service', state.service]]), undefined, Math.floor(now / 60e3));
  const lacking = useMemo(() => (mine && targets.data ? whyNot(types, targets.data.targets, props.features) : []), [mine, targets.data, props.features]);
  const off = has(type) ? undefined : lacking.find((l) => familyOf(l.type) === familyOf(type));
  // A snapshot is one moment without a curve: show the heap leading up to it.
  const heap = types.find((t) => isPicture(type) && !isPicture(t.type) && kindOf(t.type) === kindOf(type))?.type;
  const labels = state.labels.map((l): [string, string] => ['label', l]);
  const ofType = (t: string): Params => [['service', state.service], ['type', t], ...labels];
  // Ask for a type only once it is known to exist, or that there is nothing to say about why it does not.
  const ask = type && !off && (services.error || (mine ? has(type) || targets.data || targets.error : services.data));
  const series = useQuery<Series>(ask ? url('/api/series', [...ofType(countedBy(heap ?? type, types)), ...windowParams(shown)]) : null);
  const windows: Params = [...windowParams(w), ...(base ? windowParams(base, 'before_') : [])];
  const flame = useQuery<RawFlame, Profile>(
    ask ? url('/api/flame', [...ofType(type), ...windows, ['max_nodes', MAX_NODES], ...(state.group ? [['group', state.group] as [string, string]] : [])]) : null,
    (raw) => decode(raw, rateUnit(type), (w.to - w.from) / 1000, base ? (base.to - base.from) / 1000 : 1),
  );

  const events = useEvents(mine && [mine], shown, state.range, state.service);
  // Not with each refresh: it changes seldom.
  const seen = useQuery<Labels>(useMemo(
    () => (mine ? url('/api/labels', [['service', state.service], ...windowParams(shown)]) : null),
    [!mine, state.service, state.range, state.base, Math.floor(shown.to / LABELS_EVERY)],
  ));
  const marks = useMemo(
    () => [...startMarks(seen.data, shown, props.interval, prefs.utc), ...marksOf(events, prefs.utc)],
    [seen.data, events, prefs.utc],
  );

  const raw = flame.data;
  const processes = useProcesses(state.service, w, base, state.per === 'process' && !state.norm, props.interval);
  const scaled = useMemo(() => (raw ? normalised(raw.diff && processes ? perProcess(raw, processes) : raw, state.norm) : null),
    [raw, state.norm, processes?.[0], processes?.[1]]);
  const whole = useReshaped(scaled, state);
  const cuts = `${state.focus.join('\n')}|${state.hide.join('\n')}|${state.fold.join('\n')}`;
  const p = useMemo(() => (whole ? cut(whole, state) : null), [whole, cuts]);
  const [found, wrong] = useMemo((): [Found | null, string] => {
    try {
      return [p ? search(p, state.q) : null, ''];
    } catch {
      return [null, 'invalid regular expression'];
    }
  }, [p, state.q]);
  const lit = useMemo(() => (p && !state.q ? litNames(p, state.lit) : null), [p, state.q, state.lit]);
  const hit = found?.hit ?? lit;
  const rows = useMemo(() => (p ? functions(p) : []), [p]);
  const zoom = useMemo(() => (p ? findPath(p, state.zoom) : 0), [p, state.zoom]);
  const act = useActions(state, p, say, setMenu);

  const select = (x: Window) => {
    if (picking === 'A' && base) {
      go({ base: x, zoom: '' });
      setPicking('B');
      say('Baseline A is set. Drag again to set window B.');
    } else go({ sel: x, zoom: '' });
  };
  const chosen: Chosen = {
    sel: state.sel || base ? w : null,
    base,
    marks,
    onSelect: select,
    onReset: () => { go({ sel: null, base: null, zoom: '' }); setPicking('B'); },
  };
  const view: Exclude<View, ''> = state.view || (narrow() ? 'flame' : 'both');
  const zoomTo = (i: number) => p && go({ zoom: pathHash(p, i) });
  const empty = p && !(p.total[0]! > 0) && !(p.diff && p.beforeTotal[0]! > 0);

  if (services.data && !mine && !state.sel && !state.type)
    return (
      <main class="service" id="main">
        <Empty title={`${state.service} has no profiles in this range`}>
          <p>It may have stopped, or just started. Try a longer range.</p>
          <button type="button" onClick={() => go({ range: '24h' })}>Last 24 h</button>{' '}
          <button type="button" onClick={() => go({ range: '7d' })}>Last 7 d</button>{' '}
          <a class="button" href="#/">Overview</a>
        </Empty>
      </main>
    );

  return (
    <main class="service" id="main">
      <Progress on={services.slow || series.slow || flame.slow} />
      <h1 class="sr">{state.service}</h1>
      {/* Reserves room for the cards, so the layout does not shift when they arrive. */}
      {(mine || !services.data) && <TypeCards types={types} lacking={lacking} step={services.data?.step_ms ?? 1} current={type} />}
      {services.error && <Failure error={services.error} retry={services.retry} />}
      {series.error && !services.error && <Failure error={series.error} retry={series.retry} />}
      <OomBanner events={events} utc={prefs.utc} />
      {series.data ? (
        <Timeline {...chosen} series={series.data} utc={prefs.utc} dark={theme.dark} picking={picking} type={heap ?? type}>
          {state.sel && !base && !isPicture(type) && <SelectionActions state={state} w={w} shown={shown} oldest={props.oldest} />}
        </Timeline>
      ) : !off && <div class="timeline wait" />}
      {types.some((t) => isRuntime(t.type)) && (
        <Runtime {...chosen} types={types} step={services.data!.step_ms} common={[['service', state.service], ...labels]}
          window={windowParams(shown)} processes={mine!.processes} open={showsRuntime(prefs)}
          setOpen={(runtime) => props.setPrefs({ runtime })} utc={prefs.utc} dark={theme.dark} />
      )}
      {!off && <WindowLine state={state} w={w} base={base} oldest={props.oldest} prefs={prefs} picking={picking}
        usual={raw?.mode === 'snapshot' ? 'average' : 'per second'} processes={processes} setPicking={setPicking} setPrefs={props.setPrefs} />}
      {!off && <div class="toolbar">
        <span class="seg" role="group" aria-label="View">
          {([['table', 'Table'], ['both', 'Both'], ['flame', 'Flame graph'], ['sandwich', 'Function']] as const).map(([v, text]) => (
            <button type="button" class={v === 'both' ? 'wide' : ''} aria-pressed={view === v} onClick={() => go({ view: v })}>{text}</button>
          ))}
        </span>
        <Variants types={types} current={type} />
        <SearchBox q={state.q} found={found} wrong={wrong} />
        <span class="grow" />
        <Reshape p={scaled} state={state} labels={seen.data} />
        <LabelFilter service={state.service} w={w} chosen={state.labels} utc={prefs.utc} />
        <PprofLinks stream={ofType(type)} w={w} base={base} />
        <button type="button" aria-haspopup="menu" disabled={!p || !!empty} 
          onClick={(e) => setMenu(imageMenu({ state, type, w, base, profile: p!, zoom, hit, theme }, e.currentTarget, say))}>Image</button>
        <button type="button" title="Key: y" onClick={async () => say((await copy(location.href)) ? 'Link copied' : 'Could not copy; use the address bar instead')}>Share</button>
      </div>}
      <Chips state={state} />
      {flame.error && !services.error && <Failure error={flame.error} retry={flame.retry} />}
      {p?.diff && !p.beforeTotal[0] && p.total[0]! > 0 && (
        <p class="note">Nothing was recorded in A, so all of B appears new. Click A and drag on the timeline to set another baseline.</p>
      )}
      {p && p.folded > 0 && (
        <p class="note">{value(p.folded, p.unit)} ({percent(p.folded, p.total[0]!)}) in frames too small to show, grouped as (other).</p>
      )}
      {off ? <WhyNotPage why={off} /> : empty ? (
        <Empty title="No data in this window">
          <p>{state.focus.length + state.hide.length + state.labels.length > 0
            ? 'The filters exclude everything. Remove one above.'
            : 'Select a window where the timeline has data; double-click resets it.'}</p>
          {type.startsWith('go_goroutine:') && <p>Goroutines are collected less often; try a longer window.</p>}
          {state.sel && <button type="button" onClick={() => go({ sel: null })}>Reset window</button>}
        </Empty>
      ) : p ? (
        <div class={flame.slow || flame.error ? 'panes stale' : 'panes'} data-view={view} aria-busy={flame.loading}>
          {view !== 'flame' && (view !== 'sandwich' || !narrow()) && (
            <Table p={p} rows={rows} hit={hit} current={view === 'sandwich' ? state.fn : ''}
              onPick={(fn) => go({ fn, view: 'sandwich' })} onMenu={act.menu} onKey={act.key} />
          )}
          {(view === 'both' || view === 'flame') && (
            <div class="graph">
              <Crumbs p={p} zoom={zoom} onZoom={zoomTo} />
              <Legend p={p} theme={theme} lit={state.lit} />
              <FlameView profile={p} zoom={zoom} hit={hit} theme={theme} label={`Flame graph of ${state.service}`}
                onZoom={zoomTo} onMenu={act.menu} onKey={act.key} />
            </div>
          )}
          {view === 'sandwich' && (
            <FunctionView {...{ p, state, type, w, base, chosen, theme, say }} fn={state.fn} hit={hit} oldest={props.oldest}
              asked={{ common: ofType(type), windows, range: windowParams(shown) }} utc={prefs.utc} dark={theme.dark} alone={narrow()} menu={act.menu} keyed={act.key} />
          )}
        </div>
      ) : (
        <div class="panes wait">{flame.slow && <div class="skeleton" aria-hidden="true">{[1, 2, 3, 4, 5, 6].map(() => <div />)}</div>}</div>
      )}
      {menu && <Menu menu={menu} close={() => setMenu(null)} />}
    </main>
  );
}
