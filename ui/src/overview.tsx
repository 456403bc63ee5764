/* The overview: the machine, its services, and what cannot be profiled and why. */
import { useCallback, useEffect, useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks';
import type { Health, OomEvent, Targets } from './api';
import { useEventsOf } from './events';
import { Failure, Progress } from './parts';
import { useQuery } from './query';
import { go, type State } from './state';
import { isPicture } from './types';
import { NothingYet } from './overview/first';
import { HealthLine } from './overview/health';
import { Machine } from './overview/machine';
import { viewOf, type Line } from './overview/model';
import { NoCpu, Troubled, Unprofiled } from './overview/notes';
import { useOverview } from './overview/refresh';
import { fold, search, sortRows, unfold } from './overview/rows';
import { ServiceTable, sortOf } from './overview/table';
import './overview/overview.css';

/* The list of processes is long, and changes little. */
const TARGETS_EVERY = 5 * 60e3;
const EVENTS_EVERY = 5 * 60e3;

/* Where the page was left, for the way back. */
let left = { scroll: 0, open: new Set<string>() };

export interface OverviewProps {
  state: State;
  now: number;
  health: Health | null;
  ready: boolean; // the registry is there
  epoch: number;
  utc: boolean;
  dark: boolean;
}

const byService = (events: OomEvent[]) => {
  const found = new Map<string, OomEvent[]>();
  for (const e of events) found.set(e.service, [...(found.get(e.service) ?? []), e]);
  return found;
};

/** OOM events of the window. Asked for where somebody has a snapshot, after a kill and now and then. */
function useOom(lines: Line[], w: { from: number; to: number }, now: number, kills: number) {
  const who = lines.filter((l) => l.types.some(isPicture)).length;
  const stamp = who ? `${who} ${kills} ${Math.floor(now / EVENTS_EVERY)}` : '';
  const events = useEventsOf(stamp, { from: w.from, to: Math.max(w.to, now) });
  return useMemo(() => byService(events), [events]);
}

export function Overview({ state, now, health, ready, epoch, utc, dark }: OverviewProps) {
  const overview = useOverview(state.range, now, epoch);
  const held = ready ? overview.data : null;
  const view = useMemo(() => held && viewOf(held, now, health?.started ?? 0), [held]);
  const rows = useMemo(() => (view ? fold(view) : []), [view]);
  const [open, setOpen] = useState(left.open);
  const [goal, setGoal] = useState(''); // the group to scroll to
  const port = useRef<HTMLElement>(null);
  const there = !!view?.lines.length;
  const targets = useQuery<Targets>(held ? '/api/targets' : null, undefined, Math.floor(now / TARGETS_EVERY));
  const events = useOom(view?.lines ?? [], view ?? { from: 0, to: 1 }, now, health?.oom_kills ?? 0);
  const { key, down } = sortOf(state.sort);
  const shown = useMemo(
    () => (state.filter && view ? sortRows(search(view, state.filter), key, down) : unfold(sortRows(rows, key, down), open, key, down)),
    [view, rows, state.filter, key, down, open],
  );

  useLayoutEffect(() => {
    if (there) port.current!.scrollTop = left.scroll;
  }, [there]);
  useEffect(() => {
    left = { ...left, open };
  }, [open]);
  useEffect(() => {
    const el = port.current!;
    const note = () => (left = { ...left, scroll: el.scrollTop });
    el.addEventListener('scroll', note, { passive: true });
    return () => el.removeEventListener('scroll', note);
  }, []);

  const toggle = useCallback((group: string) => setOpen((old) => {
    const next = new Set(old);
    if (!next.delete(group)) next.add(group);
    return next;
  }), []);
  const showGroup = (group: string) => {
    setOpen((old) => new Set(old).add(group));
    setGoal(group);
    if (state.filter) go({ filter: '' }, true);
  };
  useLayoutEffect(() => {
    const at = goal ? shown.findIndex((r) => r.key === goal) : -1;
    if (at < 0) return;
    const body = port.current!.querySelector<HTMLElement>('.sbody')!;
    const above = body.getBoundingClientRect().top - port.current!.getBoundingClientRect().top;
    // Below the head of the table, which stays in view.
    port.current!.scrollTop += above + (at * body.offsetHeight) / shown.length - 60;
    setGoal('');
  }, [goal, shown]);

  const short = view ? view.lines.filter((l) => l.short).length : 0;
  return (
    <main class="overview" id="main" ref={port}>
      <Progress on={overview.slow} />
      <h1 class="sr">Overview</h1>
      {overview.error && <Failure error={overview.error} retry={overview.retry} />}
      {view && there && (
        <>
          <Machine {...{ view, rows, state, utc, dark }} onGroup={showGroup} />
          {health && <HealthLine health={health} />}
          {held!.damaged > 0 && <p class="hint">Part of this time is damaged on disk and missing here: see <code>sonde store check</code>.</p>}
          <section aria-labelledby="services">
            <div class="sectionhead">
              <h2 id="services">Services <span class="dim" role="status">{state.filter ? `${shown.length} of ${view.lines.length}` : short ? `${view.lines.length - short}, and ${short} short-lived programs` : view.lines.length}</span></h2>
              <input
                type="search" id="search" placeholder="Search services and programs" aria-label="Search services, programs and processes" aria-keyshortcuts="/"
                value={state.filter} onInput={(e) => go({ filter: e.currentTarget.value }, true)}
              />
            </div>
            {shown.length ? <ServiceTable {...{ view, rows: shown, open, events, state, utc, port }} onToggle={toggle} />
              : <p class="hint">No service matches. <button type="button" class="link accent" onClick={() => go({ filter: '' }, true)}>Clear search</button></p>}
          </section>
        </>
      )}
      {view && !there && (
        <>
          <NothingYet health={health} range={state.range} />
          {health && <HealthLine health={health} />}
        </>
      )}
      {targets.data && <NoCpu targets={targets.data.targets} />}
      {targets.data && <Troubled targets={targets.data.targets} />}
      {targets.data && <Unprofiled targets={targets.data.targets} filter={state.filter} />}
      {targets.error && !overview.error && <Failure error={targets.error} retry={targets.retry} />}
    </main>
  );
}
