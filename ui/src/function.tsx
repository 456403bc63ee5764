/* One function: its curve over time, its lines, and the merged trees of its callers and callees. */
import { useEffect, useMemo, useRef } from 'preact/hooks';
import { get, url, type FunctionInfo, type FunctionLine, type FunctionSeries, type FunctionSource, type Params } from './api';
import type { Theme } from './flame/draw';
import type { Profile } from './flame/layout';
import { FlameView } from './flame/view';
import { percent, shortName, signed, time, value } from './format';
import { copy, Empty, Failure } from './parts';
import { Plot, type Chosen } from './plot';
import { useLoad, useQuery } from './query';
import { sandwich } from './sandwich';
import { curve, latest } from './series';
import { comparePreceding, go, type State, type Window } from './state';
import { isPicture, rateUnit } from './types';

const HEIGHT = 104;
const MAX_LINES = 200;

/** What the page asks for: service, type and labels; the windows of the profile; the range of the timeline. */
export interface Asked {
  common: Params;
  windows: Params;
  range: Params;
}

interface DetailsProps {
  fn: string;
  state: State;
  type: string;
  asked: Asked;
  w: Window;
  base: Window | null;
  oldest: number;
  chosen: Chosen;
  utc: boolean;
  dark: boolean;
  alone: boolean; // without the table beside it
  say(text: string): void;
}

/** How values read, as in the table: sums; where windows are compared, rates, or shares of each. */
interface Reading {
  text(v: number): string;
  before(v: number): string;
  change(before: number, after: number): number;
  changeText(before: number, after: number): string;
}

function reading(f: FunctionInfo, p: DetailsProps): Reading {
  // Windows of different lengths are compared by their rates.
  const rate = f.mode === 'delta' && !!p.base;
  const unit = rate ? rateUnit(p.type) : f.unit;
  const seconds = (x: Window | null) => (rate && x ? (x.to - x.from) / 1000 : 1);
  const after = (v: number) => v / seconds(p.w);
  const before = (v: number) => v / seconds(p.base);
  const share = (v: number, whole: number | undefined) => (whole ? (100 * v) / whole : 0);
  const text = (v: number) => value(v, unit);
  if (p.state.norm && p.base) {
    const points = (b: number, a: number) => share(a, f.window_total) - share(b, f.before_window_total);
    const signedPoints = (b: number, a: number) => `${points(b, a) > 0 ? '+' : ''}${points(b, a).toFixed(2)}`;
    return {
      text: (v) => percent(v, f.window_total), before: (v) => percent(v, f.before_window_total ?? 0),
      change: points, changeText: signedPoints,
    };
  }
  return {
    text: (v) => text(after(v)), before: (v) => text(before(v)),
    change: (b, a) => after(a) - before(b), changeText: (b, a) => signed(after(a) - before(b), unit),
  };
}

const tone = (change: number) => (change > 0 ? 'worse' : change < 0 ? 'better' : '');

interface LineProps {
  l: FunctionLine;
  r: Reading;
  diff: boolean;
  most: number;
  source: string | undefined; // its text; undefined: there is none of any line
}

function Line({ l, r, diff, most, source }: LineProps) {
  const before = l.before_total ?? 0;
  return (
    <tr class="line">
      <th scope="row" class="mono" title={l.file ? `${l.file}:${l.line || '?'}` : 'line unknown'}>{l.line || '?'}</th>
      {diff && <td class="num">{r.before(before)}</td>}
      {!diff && <td class={l.self ? 'num' : 'num dim'}>{r.text(l.self)}</td>}
      <td class="num">{r.text(l.total)}</td>
      {diff && <td class={`num ${tone(r.change(before, l.total))}`}>{r.changeText(before, l.total)}</td>}
      <td class="bar" aria-hidden="true">
        <i style={{ width: `${(100 * l.total) / most}%` }} />
        <i class="self" style={{ width: `${(100 * l.self) / most}%` }} />
      </td>
      {source != null && <td class="mono source">{source}</td>}
    </tr>
  );
}

/** The lines of the source between two with values; what is left out is one row. */
function Around({ source, after, before, columns }: { source: FunctionSource; after: number; before: number; columns: number }) {
  const between = source.lines.filter((x) => x.line > after && x.line < before);
  return (
    <>
      {between.map((x, i) => (
        <>
          {x.line > (between[i - 1]?.line ?? after) + 1 && (i > 0 || after > 0) && <tr class="gap" aria-hidden="true"><td colSpan={columns}>⋯</td></tr>}
          <tr class="around">
            <th scope="row" class="mono">{x.line}</th>
            <td colSpan={columns - 2} />
            <td class="mono source">{x.text}</td>
          </tr>
        </>
      ))}
    </>
  );
}

/** What is known of the file: it may differ from the one that the program was built from. */
function SourceNote({ source, w, utc }: { source: FunctionSource; w: Window; utc: boolean }) {
  if (source.reason) return <p class="dim">Source not readable: {source.reason}.</p>;
  if (!source.modified || source.modified <= w.from) return null;
  return <p class="warn">The file was changed at {time(source.modified, utc)}: its lines may not be those of the profile.</p>;
}

function Lines({ f, r, diff, source }: { f: FunctionInfo; r: Reading; diff: boolean; source: FunctionSource | null }) {
  const most = Math.max(...f.lines.map((l) => Math.max(l.total, l.before_total ?? 0)), 1e-9);
  const rows = f.lines.slice().sort((a, b) => (a.file < b.file ? -1 : a.file > b.file ? 1 : a.line - b.line));
  // Functions of one name, in several files or builds.
  const begins = (l: FunctionLine, i: number) => rows[i - 1]?.file !== l.file && rows.some((x) => x.file !== l.file);
  const columns: [string, string][] = diff
    ? [['Before', 'in baseline A'], ['After', 'in window B'], ['Change', 'after minus before']]
    : [['Self', 'the line itself'], ['Total', 'with what it calls']];
  const text = source?.lines.length ? new Map(source.lines.map((x) => [x.line, x.text])) : null;
  const width = columns.length + 2 + (text ? 1 : 0);
  // Of lines without a number, or of another file, none is known.
  const has = (l: FunctionLine | undefined) => text && l?.file === source!.file && l.line > 0;
  return (
    <div class={text ? 'lines withsource' : 'lines'} tabIndex={0} role="region" aria-label="Lines">
      <table>
        <thead>
          <tr>
            <th scope="col">Line</th>
            {columns.map(([title, about]) => <th scope="col" class="num" title={about}>{title}</th>)}
            <td />
            {text && <th scope="col" title="the file as it is now">Source</th>}
          </tr>
        </thead>
        <tbody>
          {rows.map((l, i) => (
            <>
              {begins(l, i) && <tr><th scope="rowgroup" colSpan={width} class="ofile">{l.file || 'file unknown'}</th></tr>}
              {has(l) && <Around source={source!} after={has(rows[i - 1]) ? rows[i - 1]!.line : 0} before={l.line} columns={width} />}
              <Line {...{ l, r, diff, most }} source={text ? (has(l) ? text.get(l.line) : undefined) ?? '' : undefined} />
              {has(l) && !has(rows[i + 1]) && <Around source={source!} after={l.line} before={Infinity} columns={width} />}
            </>
          ))}
        </tbody>
      </table>
      {f.n_lines > rows.length && <p class="dim">The {rows.length} largest of {f.n_lines} lines.</p>}
    </div>
  );
}

function Curve({ p, s }: { p: DetailsProps; s: FunctionSeries }) {
  const legend = useRef<HTMLSpanElement>(null);
  const unit = s.mode === 'delta' ? rateUnit(p.type) : s.unit;
  const curves = useMemo(() => [
    { name: 'total', points: curve(s.mode, s.total, s.step_ms), colour: '--curve-2' },
    { name: 'self', points: curve(s.mode, s.self, s.step_ms), colour: '--accent', fill: true },
  ], [s]);
  const read = (i: number | null) => {
    const texts = i == null ? [] : [...curves.map((c) => value(c.points[i], unit)), time(s.from + (i + 0.5) * s.step_ms, p.utc)];
    legend.current!.querySelectorAll('b').forEach((b, k) => (b.textContent = texts[k] ?? ''));
  };
  return (
    <figure class="small" aria-label={`${shortName(p.fn)} over time: ${curves.map((c) => `${c.name} ${value(latest(c.points, s.mode === 'delta'), unit)}`).join(', ')}`}>
      <figcaption>
        <span class="smalltitle">Over time</span>
        <span class="smalllegend" ref={legend}>
          {curves.map((c) => <span><i style={{ background: `var(${c.colour})` }} />{c.name} <b /></span>)}
          <b class="mono" />
        </span>
        {s.damaged && <span class="warn">part of it is damaged on disk, and a gap</span>}
      </figcaption>
      <Plot {...p.chosen} from={s.from} to={s.to} step_ms={s.step_ms} curves={curves} unit={unit} height={HEIGHT} slim utc={p.utc} dark={p.dark} onCursor={read} />
    </figure>
  );
}

function Figures({ f, r, diff }: { f: FunctionInfo; r: Reading; diff: boolean }) {
  const one = (word: 'self' | 'total') => (
    <span class="nowrap">
      <span class="dim">{word}</span> {diff ? `${r.before(f[`before_${word}`]!)} → ` : ''}<b>{r.text(f[word])}</b>{' '}
      {diff ? <span class={tone(r.change(f[`before_${word}`]!, f[word]))}>{r.changeText(f[`before_${word}`]!, f[word])}</span>
        : <span class="dim">{percent(f[word], f.window_total)}</span>}
    </span>
  );
  return <>{one('self')}{one('total')}</>;
}

/** Of its first file, read again only where other lines have values. */
function useSource({ fn, asked }: DetailsProps, f: FunctionInfo | null): FunctionSource | null {
  const numbers = f?.lines.filter((l) => l.file === f.file).map((l) => l.line).sort((a, b) => a - b);
  const address = url('/api/function/source', [...asked.common, ['name', fn], ['file', f?.file ?? ''], ...asked.windows, ['limit', MAX_LINES]]);
  return useLoad((signal) => get<FunctionSource>(address, signal), f?.file ? `${f.file} ${numbers}` : null).data;
}

/** Name, figures and actions; then curve and lines side by side. */
function Details(p: DetailsProps) {
  const { fn, state, asked } = p;
  const about = useQuery<FunctionInfo>(url('/api/function', [...asked.common, ['name', fn], ...asked.windows, ['limit', MAX_LINES]]));
  const series = useQuery<FunctionSeries>(isPicture(p.type) ? null : url('/api/function/series', [...asked.common, ['name', fn], ...asked.range]));
  const source = useSource(p, about.data);
  const title = useRef<HTMLHeadingElement>(null);
  // On a phone it takes the place of the table, which had the focus.
  useEffect(() => {
    if (p.alone && document.activeElement === document.body) title.current!.focus();
  }, [fn]);
  const f = about.data;
  const r = f && reading(f, p);
  const add = (list: string[]) => (list.includes(fn) ? list : [...list, fn]);
  const cuts = state.focus.length + state.hide.length + state.fold.length > 0;
  return (
    <section class="details" aria-label={`Function ${fn}`} aria-busy={about.loading || series.loading}>
      <div class="sandhead">
        <h2 class="mono" ref={title} tabIndex={-1} title={fn}>{shortName(fn)}</h2>
        {f?.file && <span class="dim filename" title={f.file}><bdi>{f.file}</bdi></span>}
        <button type="button" class="link" onClick={() => go({ fn: '', view: '' })}>Close</button>
      </div>
      <div class="figures">
        {f && r && <Figures f={f} r={r} diff={!!p.base} />}
        <span class="acts">
          <button type="button" title="Only stacks through it. Key: f" onClick={() => go({ focus: add(state.focus), zoom: '' })}>Focus</button>
          <button type="button" title="Without stacks through it. Key: h" onClick={() => go({ hide: add(state.hide), zoom: '' })}>Hide</button>
          {!p.base && !isPicture(p.type) && (
            <button type="button" title="Compare with the preceding window. Key: d" onClick={() => go(comparePreceding(state, p.w, p.oldest))}>Compare</button>
          )}
          <button type="button" title="Copy its name. Key: i" onClick={async () => p.say((await copy(fn)) ? `Copied ${fn}` : 'The browser denied access to the clipboard')}>Copy</button>
        </span>
      </div>
      {about.error && <Failure error={about.error} retry={about.retry} />}
      {series.error && !about.error && <Failure error={series.error} retry={series.retry} />}
      <div class="detailgrid">
        {series.data ? <Curve p={p} s={series.data} /> : <div />}
        {f && r && (f.n_lines ? <Lines f={f} r={r} diff={!!p.base} source={source} /> : <p class="dim hint">Not in this window.</p>)}
      </div>
      {source && <SourceNote source={source} w={p.w} utc={p.utc} />}
      {cuts && <p class="dim hint">Curve and lines are those of all stacks; the filters apply to callers and callees.</p>}
    </section>
  );
}

export interface FunctionProps extends DetailsProps {
  p: Profile;
  hit: Uint8Array | null;
  theme: Theme;
  menu(fn: string, x: number, y: number): void;
  keyed(k: string, fn: string): boolean;
}

export function FunctionView(props: FunctionProps) {
  const { p, fn, hit, theme, menu, keyed } = props;
  const s = useMemo(() => (fn ? sandwich(p, fn) : null), [p, fn]);
  if (!fn)
    return (
      <Empty title="One function">
        <p>Select a function in the table, or press <kbd>s</kbd> on a frame in the flame graph: its curve, lines, callers and callees.</p>
      </Empty>
    );
  const pick = (tree: Profile) => (i: number) => {
    const name = tree.names[tree.name[i]!]!;
    if (name !== '(other)') go({ fn: name });
  };
  return (
    <div class="sandwich">
      <Details key={`${fn} ${props.type}`} {...props} />
      {s ? (
        <>
          <div class="sandhead"><span class="dim">Callers</span></div>
          <FlameView profile={s.callers} zoom={0} hit={hit} theme={theme} up label={`Callers of ${fn}`} onZoom={pick(s.callers)} onMenu={menu} onKey={keyed} />
          <div class="sandhead"><span class="dim">Callees</span></div>
          <FlameView profile={s.callees} zoom={0} hit={hit} theme={theme} label={`Callees of ${fn}`} onZoom={pick(s.callees)} onMenu={menu} onKey={keyed} />
        </>
      ) : (
        <p class="hint">It has no samples in this window, or a filter hides it.</p>
      )}
    </div>
  );
}
