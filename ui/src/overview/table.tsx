/*
 * The table of services. Only the rows in view are in the document, and the one that has the focus, so
 * a thousand cost as much as thirty. Tab and the arrow keys reach them all.
 */
import type { ComponentChildren, RefObject } from 'preact';
import { useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks';
import type { OomEvent } from '../api';
import { OomNote } from '../events';
import { time, value } from '../format';
import { Spark } from '../parts';
import type { Points } from '../series';
import { go, serviceLink, type State } from '../state';
import { typeText, wordOf } from '../types';
import { changeOf } from './change';
import type { Line, View } from './model';
import { profilesOf, type Row, type SortKey } from './rows';

const COLUMNS: [SortKey, string, string][] = [
  ['name', 'Service', 'by name'],
  ['runtime', 'Runtime', 'by runtime'],
  ['cpu', 'CPU', 'average of the last tenth of the range'],
  ['memory', 'Memory', 'resident memory'],
  ['processes', 'Processes', 'processes that run now'],
  ['profiles', 'Profiles', 'profile types of the service'],
];

/** Of the address; by CPU, the largest first, when it says nothing. */
export function sortOf(text: string): { key: SortKey; down: boolean } {
  const [key = '', dir] = text.split(' ');
  const known = COLUMNS.find(([k]) => k === key);
  return { key: known?.[0] ?? 'cpu', down: !known || dir !== 'up' };
}

/* As in overview.css; on a phone a row is a card. */
export const NARROW = matchMedia('(max-width: 640px)');
const rowHeight = () => (NARROW.matches ? 118 : 42);
const AROUND = 8; // rows above and below the ones in view

/** Indices of the rows in view, and the height of a row. */
function useVisible(port: RefObject<HTMLElement>, body: RefObject<HTMLElement>, count: number): { first: number; last: number; height: number } {
  const [seen, set] = useState({ first: 0, last: Math.ceil(innerHeight / rowHeight()), height: rowHeight() });
  useLayoutEffect(() => {
    const [frame, list] = [port.current!, body.current!];
    const look = () => {
      const height = rowHeight();
      const above = frame.getBoundingClientRect().top - list.getBoundingClientRect().top;
      // In steps: not every pixel of scrolling is worth a comparison of the rows.
      const first = Math.max(0, Math.floor(above / height / 4) * 4 - AROUND);
      const last = Math.ceil((above + frame.clientHeight) / height / 4) * 4 + AROUND;
      set((s) => (s.first === first && s.last === last && s.height === height ? s : { first, last, height }));
    };
    look();
    const sized = new ResizeObserver(look);
    sized.observe(frame);
    sized.observe(list);
    frame.addEventListener('scroll', look, { passive: true });
    return () => {
      sized.disconnect();
      frame.removeEventListener('scroll', look);
    };
  }, []);
  return { ...seen, first: Math.min(seen.first, Math.max(0, count - 1)), last: Math.min(seen.last, count) };
}

export interface TableProps {
  view: View;
  rows: Row[];
  open: Set<string>;
  events: Map<string, OomEvent[]>;
  state: State;
  utc: boolean;
  port: RefObject<HTMLElement>; // what scrolls
  onToggle(key: string): void;
}

export function ServiceTable({ view, rows, open, events, state, utc, port, onToggle }: TableProps) {
  const body = useRef<HTMLDivElement>(null);
  const { first, last, height } = useVisible(port, body, rows.length);
  const [focused, setFocused] = useState('');
  const sort = sortOf(state.sort);
  const shown = rows.slice(first, last).map((row, i) => ({ row, i: first + i }));
  const kept = focused ? rows.findIndex((r) => r.key === focused) : -1;
  if (kept >= 0 && (kept < first || kept >= last)) shown.push({ row: rows[kept]!, i: kept });

  const keyed = (e: KeyboardEvent) => {
    const page = Math.max(1, Math.floor(port.current!.clientHeight / height) - 2);
    const by = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -rows.length, End: rows.length }[e.key];
    if (!by || kept < 0 || e.ctrlKey || e.metaKey || e.altKey) return;
    e.preventDefault();
    const to = Math.max(0, Math.min(rows.length - 1, kept + by));
    setFocused(rows[to]!.key);
    requestAnimationFrame(() => {
      const row = body.current?.querySelector<HTMLElement>(`[data-key="${CSS.escape(rows[to]!.key)}"]`);
      row?.querySelector<HTMLElement>('a, button')?.focus({ preventScroll: true });
      row?.scrollIntoView({ block: 'nearest' });
    });
  };
  return (
    <div class="services" role="table" aria-label="Services" aria-rowcount={rows.length + 1}>
      <div role="rowgroup">
        <div role="row" class="shead" aria-rowindex={1}>
          {COLUMNS.map(([key, title, about]) => (
            <div role="columnheader" class={`c-${key}`} aria-sort={sort.key === key ? (sort.down ? 'descending' : 'ascending') : 'none'}>
              <button type="button" class="link" title={about} onClick={() => go({ sort: `${key} ${sort.key === key && sort.down ? 'up' : 'down'}` }, true)}>
                {title}<span aria-hidden="true">{sort.key === key ? (sort.down ? ' ↓' : ' ↑') : ''}</span>
              </button>
            </div>
          ))}
        </div>
      </div>
      <div role="rowgroup" class="sbody" ref={body} style={{ height: `${rows.length * height}px` }} onKeyDown={keyed}
        onFocusCapture={(e) => setFocused((e.target as HTMLElement).closest<HTMLElement>('[data-key]')?.dataset['key'] ?? '')}>
        {shown.map(({ row, i }) => (
          <div role="row" key={row.key} data-key={row.key} class={row.inside ? 'srow inside' : 'srow'} aria-rowindex={i + 2} style={{ top: `${i * height}px` }}>
            {row.line ? <ServiceCells {...{ view, row, state, utc }} events={events.get(row.line.service)} />
              : <GroupCells {...{ row }} open={open.has(row.key)} onToggle={onToggle} />}
          </div>
        ))}
      </div>
    </div>
  );
}

/* The figure above has the unit; there is no room for it twice. */
const CORES = /\u2009cores?$/;
/* A smaller change is not worth a word. */
const LEAST = { cores: 0.05, bytes: 32 * 1048576 };

function Changed({ points, unit, view, utc }: { points: Points; unit: 'cores' | 'bytes'; view: View; utc: boolean }) {
  const c = changeOf(points, LEAST[unit]);
  if (!c) return null;
  const text = (v: number) => value(unit === 'cores' ? v * 1e9 : v, unit);
  const [arrow, word] = c.now > c.before ? ['↗', 'rose'] : ['↘', 'fell'];
  const since = time(view.from + c.since * view.step_ms, utc);
  return (
    <span class={c.now > c.before ? 'changed up' : 'changed'} title={`${word} from ${text(c.before)} to ${text(c.now)} at ${since}: more than this service usually varies`}>
      <span aria-hidden="true">{arrow}</span><span class="sr">, {word}</span> from {text(c.before).replace(CORES, '')}
    </span>
  );
}

function Curve({ name, row, href, points, children }: { name: string; row: Row; href: string; points: Points; children: ComponentChildren }) {
  return (
    <a class="cell" href={href}>
      <span class="sr">{row.name}, {name}: </span>
      <Spark points={points} />
      {children}
    </a>
  );
}

/** Now; of what has ended, its average over the range. */
function Cores({ row }: { row: Row }) {
  const mean = value(row.mean * 1e9, 'cores');
  return row.cpuNow != null ? <span class="now" title={`average over the range: ${mean}`}>{value(row.cpuNow * 1e9, 'cores')}</span>
    : <span class="now dim" title="average over the range">avg {mean}</span>;
}

const CPU = 'cpu:cpu:nanoseconds';

function ServiceCells({ view, row, state, utc, events }: { view: View; row: Row; state: State; utc: boolean; events: OomEvent[] | undefined }) {
  // The same element again is not compared: scrolling and typing touch only what is new.
  return useMemo(() => cellsOf(row, row.line!, view, state, utc, events), [row, view, state.range, utc, events]);
}

function cellsOf(row: Row, l: Line, view: View, state: State, utc: boolean, events: OomEvent[] | undefined) {
  const cpu = l.cpu.some((v) => v != null);
  const profiles = profilesOf(l);
  return (
    <>
      <div role="rowheader" class="c-name">
        <a class="name" href={serviceLink(l.service, state.range)} title={l.service}>{l.service}</a>
        {events ? <OomNote events={events} range={state.range} utc={utc} />
          : !l.running && <span class="ended dim">{l.short ? 'short-lived, ' : ''}last seen {time(l.last, utc)}</span>}
      </div>
      <div role="cell" class="c-runtime">{l.runtime && <span class={`badge ${l.runtime.split(' ')[0]!.toLowerCase()}`}>{l.runtime}</span>}</div>
      <div role="cell" class="c-cpu">
        {cpu && (
          <Curve name="CPU" row={row} href={serviceLink(l.service, state.range, l.types.includes(CPU) ? CPU : '')} points={l.cpu}>
            <Cores row={row} />
            {l.running && <Changed points={l.cpu} unit="cores" view={view} utc={utc} />}
          </Curve>
        )}
      </div>
      <div role="cell" class="c-memory">
        {!l.short && l.memory.some((v) => v != null) && (
          <Curve name="memory" row={row} href={serviceLink(l.service, state.range)} points={l.memory}>
            <span class="now">{row.memoryNow != null && value(row.memoryNow, 'bytes')}</span>
            {l.running && <Changed points={l.memory} unit="bytes" view={view} utc={utc} />}
          </Curve>
        )}
      </div>
      <div role="cell" class="c-processes num">{l.running && l.processes > 0 && l.processes}</div>
      <div role="cell" class="c-profiles">
        {profiles.map((type) => (
          <a class="pill" key={type} href={serviceLink(l.service, state.range, type)} title={`${typeText(type).title}: ${typeText(type).help}`}>{wordOf(type)}<span class="sr"> of {l.service}</span></a>
        ))}
      </div>
    </>
  );
}

function GroupCells({ row, open, onToggle }: { row: Row; open: boolean; onToggle(key: string): void }) {
  return (
    <>
      <div role="rowheader" class="c-name c-group">
        <button type="button" class="link name" aria-expanded={open} onClick={() => onToggle(row.key)} title={`${row.name}: none ran for a minute`}>
          <span class="fold" aria-hidden="true">{open ? '▾' : '▸'}</span>{row.name}
        </button>
      </div>
      <div role="cell" class="c-runtime" hidden />
      <div role="cell" class="c-cpu">
        <span class="cell"><Spark points={row.cpu} /><Cores row={row} /></span>
      </div>
      <div role="cell" class="c-memory" />
      <div role="cell" class="c-processes" />
      <div role="cell" class="c-profiles" />
    </>
  );
}
