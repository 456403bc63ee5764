/*
 * The profile as a table of functions, also for those who cannot see the graph. Only visible rows
 * are rendered.
 */
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { rowChange, wholeChange } from './compare';
import type { Profile, Row } from './flame/layout';
import { percent, signed, value } from './format';

const HEIGHT = 24;

interface Column {
  key: string;
  title: string;
  about: string;
  wide?: boolean; // hidden on narrow screens
  number(r: Row): number;
  text(r: Row): string;
  tone?(r: Row): string;
}

const zero = (v: number) => (v === 0 ? 'dim' : '');

function plainColumns(p: Profile): Column[] {
  const all = p.total[0]!;
  return [
    { key: 'self', title: 'Self', about: 'the function itself', number: (r) => r.self, text: (r) => value(r.self, p.unit) },
    { key: 'selfp', title: 'Self %', about: 'share of the window', wide: true, number: (r) => r.self, text: (r) => percent(r.self, all) },
    { key: 'total', title: 'Total', about: 'including callees', number: (r) => r.total, text: (r) => value(r.total, p.unit) },
    { key: 'totalp', title: 'Total %', about: 'share of the window', wide: true, number: (r) => r.total, text: (r) => percent(r.total, all) },
  ];
}

function diffColumns(p: Profile, by: 'self' | 'total', whole: number): Column[] {
  const of = (r: Row) => rowChange(p, r, by);
  const text = (v: number) => (p.norm ? `${v.toFixed(2)}%` : value(v, p.unit));
  const delta = (v: number) => (p.norm ? `${v > 0 ? '+' : ''}${v.toFixed(2)}` : signed(v, p.unit));
  const tone = (r: Row) => (of(r).change > 0 ? 'worse' : of(r).change < 0 ? 'better' : '');
  return [
    { key: 'before', title: 'Before', about: 'in baseline A', wide: true, number: (r) => of(r).before, text: (r) => text(of(r).before) },
    { key: 'after', title: 'After', about: 'in window B', wide: true, number: (r) => of(r).after, text: (r) => text(of(r).after) },
    { key: 'change', title: 'Change', about: 'after minus before', number: (r) => Math.abs(of(r).change), text: (r) => delta(of(r).change), tone },
    { key: 'share', title: 'Share', about: 'of the total change', number: (r) => of(r).change, text: (r) => percent(of(r).change, whole), tone },
  ];
}

export interface TableProps {
  p: Profile;
  rows: Row[];
  hit: Uint8Array | null;
  current: string;
  onPick(fn: string): void;
  onMenu(fn: string, x: number, y: number): void;
  onKey(key: string, fn: string): boolean;
}

function useSorted(props: TableProps, columns: Column[], sort: string, down: boolean): Row[] {
  return useMemo(() => {
    const { p, rows, hit } = props;
    const list = hit ? rows.filter((r) => hit[r.id]) : rows.slice();
    const column = columns.find((c) => c.key === sort);
    const sign = down ? 1 : -1;
    if (column) return list.sort((a, b) => sign * (column.number(b) - column.number(a)));
    return list.sort((a, b) => sign * (p.names[b.id]! < p.names[a.id]! ? -1 : 1));
  }, [props.rows, props.hit, columns, sort, down]);
}

export function Table(props: TableProps) {
  const { p } = props;
  const [by, setBy] = useState<'self' | 'total'>('self');
  const [picked, setPicked] = useState('');
  const [down, setDown] = useState(true);
  const [top, setTop] = useState(0);
  const [height, setHeight] = useState(600);
  const [at, setAt] = useState(0);
  const port = useRef<HTMLDivElement>(null);

  const columns = useMemo(
    () => (p.diff ? diffColumns(p, by, wholeChange(p, props.rows)) : plainColumns(p)),
    [p, by, props.rows],
  );
  const known = picked === 'name' || columns.some((c) => c.key === picked);
  const sort = known ? picked : p.diff ? 'change' : 'self';
  const list = useSorted(props, columns, sort, down);

  useEffect(() => {
    const seen = new ResizeObserver(() => setHeight(port.current!.clientHeight));
    seen.observe(port.current!);
    return () => seen.disconnect();
  }, []);

  const first = Math.max(0, Math.floor(top / HEIGHT) - 6);
  const last = Math.min(list.length, first + Math.ceil(height / HEIGHT) + 12);
  const current = Math.min(at, list.length - 1);

  const move = (to: number) => {
    const next = Math.max(0, Math.min(list.length - 1, to));
    setAt(next);
    const el = port.current!;
    if (next * HEIGHT < el.scrollTop) el.scrollTop = next * HEIGHT;
    if ((next + 1) * HEIGHT > el.scrollTop + el.clientHeight) el.scrollTop = (next + 1) * HEIGHT - el.clientHeight;
    requestAnimationFrame(() => el.querySelector<HTMLElement>('[tabindex="0"]')?.focus());
  };
  const keyed = (e: KeyboardEvent, r: Row) => {
    if (e.ctrlKey || e.metaKey || e.altKey) return;
    const page = Math.max(1, Math.floor(height / HEIGHT) - 1);
    const steps: Record<string, number> = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -1e9, End: 1e9 };
    const name = p.names[r.id]!;
    if (steps[e.key]) move(current + steps[e.key]!);
    else if (e.key === 'Enter' || e.key === ' ') props.onPick(name);
    else if (e.key === 'm' || e.key === 'ContextMenu') {
      const box = (e.currentTarget as HTMLElement).getBoundingClientRect();
      props.onMenu(name, box.left + 40, box.bottom);
    } else if (!props.onKey(e.key, name)) return;
    e.preventDefault();
    e.stopPropagation();
  };
  const order = (key: string) => {
    setDown(key === sort ? !down : true);
    setPicked(key);
    setAt(0);
  };
  const head = (key: string, title: string, about: string, cls: string) => (
    <div role="columnheader" class={cls} aria-sort={sort === key ? (down ? 'descending' : 'ascending') : 'none'}>
      <button type="button" class="link" title={about} onClick={() => order(key)}>
        {title}
        <span aria-hidden="true">{sort === key ? (down ? ' ↓' : ' ↑') : ''}</span>
      </button>
    </div>
  );

  return (
    <div class={p.diff ? 'tablebox two' : 'tablebox'}>
      {p.diff && (
        <div class="tablebar">
          <span class="dim">Change in</span>
          <span class="seg" role="group" aria-label="Values compared">
            <button type="button" aria-pressed={by === 'self'} onClick={() => setBy('self')}>self</button>
            <button type="button" aria-pressed={by === 'total'} onClick={() => setBy('total')}>total</button>
          </span>
        </div>
      )}
      <div class={p.diff ? 'grid diff' : 'grid'} role="table" aria-label="Functions" aria-rowcount={list.length + 1}>
        <div role="rowgroup" class="thead">
          <div role="row" aria-rowindex={1} class="tr">
            {head('name', 'Function', 'by name', 'td fn')}
            {columns.map((c) => head(c.key, c.title, c.about, c.wide ? 'td num wide' : 'td num'))}
          </div>
        </div>
        <div role="rowgroup" class="tbody" ref={port} tabIndex={list.length ? -1 : 0} onScroll={(e) => setTop(e.currentTarget.scrollTop)}>
          <div role="presentation" style={{ height: `${list.length * HEIGHT}px` }} />
          {list.slice(first, last).map((r, k) => {
            const name = p.names[r.id]!;
            return (
              <div
                role="row"
                key={r.id}
                class={name === props.current ? 'tr row on' : 'tr row'}
                aria-rowindex={first + k + 2}
                tabIndex={first + k === current ? 0 : -1}
                style={{ top: `${(first + k) * HEIGHT}px` }}
                onClick={() => {
                  setAt(first + k);
                  props.onPick(name);
                }}
                onFocus={() => setAt(first + k)}
                onContextMenu={(e) => {
                  e.preventDefault();
                  props.onMenu(name, e.clientX, e.clientY);
                }}
                onKeyDown={(e) => keyed(e, r)}
              >
                <div role="cell" class="td fn mono" title={name}>
                  {p.short[r.id]}
                  {p.variants[r.id] && <span class="dim">{p.variants[r.id]!.join(', ')}</span>}
                </div>
                {columns.map((c) => (
                  <div role="cell" class={`td num${c.wide ? ' wide' : ''} ${c.tone?.(r) || zero(c.number(r))}`}>{c.text(r)}</div>
                ))}
              </div>
            );
          })}
        </div>
      </div>
      {!list.length && <p class="hint">No function matches the search.</p>}
    </div>
  );
}
