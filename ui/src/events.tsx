/*
 * OOM kills and near misses: a sentence, a mark on the timeline, and a link to the snapshot of
 * the heap at that moment.
 */
import { useMemo, useState } from 'preact/hooks';
import { url, type OomEvent, type OomEvents, type Service } from './api';
import { percent, shortName, time, value } from './format';
import type { Mark } from './plot';
import { useQuery } from './query';
import { format, go, START, type State, type Window } from './state';
import { eventTitle, eventType, isPicture } from './types';

export const isKill = (e: OomEvent) => e.kind === 'oom_kill';

/** "OOM-killed at 12:03:11, 1.9 GB; 94% in main.appendToCache" */
export function sentence(e: OomEvent, utc: boolean): string {
  const what = `${eventTitle(e.kind)} at ${time(e.time, utc)}`;
  const size = e.rss_bytes != null ? `, ${value(e.rss_bytes, 'bytes')}`
    : e.inuse_bytes != null ? `, heap ${value(e.inuse_bytes, 'bytes')}` : '';
  const top = e.top ? `; ${percent(e.top.share, 1)} in ${shortName(e.top.name)}` : '';
  return what + size + top;
}

/** Shows the heap of that process at that moment. */
export const pictureOf = (e: OomEvent): Partial<State> => ({
  type: eventType(e.kind),
  sel: { from: e.time, to: e.time + 1 },
  base: null,
  labels: [`process.pid=${e.pid}`],
  view: '',
  zoom: '',
  fn: '',
  focus: [],
  hide: [],
  fold: [],
});

/** Events of the window. The list is expensive for the server: asked for again when `stamp` changes, and never without one. */
export function useEventsOf(stamp: string, w: Window, service = ''): OomEvent[] {
  const address = useMemo(
    () => (stamp ? url('/api/events', [...(service ? [['service', service] as [string, string]] : []), ['from', Math.round(w.from)], ['to', Math.round(w.to)]]) : null),
    [stamp, service, w.to - w.from],
  );
  const list = useQuery<OomEvents>(address).data?.events;
  return useMemo(() => (list ?? []).filter((e) => e.time >= w.from && e.time < w.to + 1), [list, w.from, w.to]);
}

/** Of services whose snapshots say when the last event was. */
export function useEvents(services: Service[] | undefined, w: Window, range: string, service = ''): OomEvent[] {
  const pictures = (services ?? []).flatMap((s) => s.types.filter((t) => isPicture(t.type)));
  const newest = pictures.reduce((last, t) => Math.max(last, t.last), 0);
  return useEventsOf(newest ? `${newest} ${range}` : '', { from: w.from, to: Math.max(w.to, newest + 1) }, service);
}

export const marksOf = (events: OomEvent[], utc: boolean): Mark[] =>
  events.map((e) => ({ at: e.time, kind: isKill(e) ? 'kill' : 'near', text: sentence(e, utc), open: () => go(pictureOf(e)) }));

/** The most important event: the last kill, or else the last near miss. */
export const foremost = (events: OomEvent[]): OomEvent | undefined => events.find(isKill) ?? events[0];

function Line({ e, utc }: { e: OomEvent; utc: boolean }) {
  return (
    <>
      <span class="oomtext">
        <span class="oomicon" aria-hidden="true">{isKill(e) ? '✕' : '!'}</span>
        <b title={e.top?.name}>{sentence(e, utc)}</b>{' '}
        <span class="dim">pid {e.pid}{e.picture === 'earlier' && ', last snapshot before the kill'}</span>
      </span>
      {e.inuse_bytes != null && (
        <button type="button" onClick={() => go(pictureOf(e))}>
          {isKill(e) ? 'Show last heap' : 'Show heap'}<span class="sr">, {time(e.time, utc)}</span>
        </button>
      )}
    </>
  );
}

export function OomBanner({ events, utc }: { events: OomEvent[]; utc: boolean }) {
  const [all, setAll] = useState(false);
  const first = foremost(events);
  if (!first) return null;
  const others = events.filter((e) => e !== first);
  return (
    <div class={isKill(first) ? 'oom kill' : 'oom near'} role="status" aria-label="Out of memory">
      <div class="oomline">
        <Line e={first} utc={utc} />
        {others.length > 0 && (
          <button type="button" class="quiet" aria-expanded={all} onClick={() => setAll(!all)}>{all ? 'Fewer' : `${others.length} more`}</button>
        )}
      </div>
      {all && <ul class="plain">{others.map((e) => <li class={isKill(e) ? 'oomline' : 'oomline near'}><Line e={e} utc={utc} /></li>)}</ul>}
    </div>
  );
}

/** For a service row in the overview. */
export function OomNote({ events, range, utc }: { events: OomEvent[]; range: string; utc: boolean }) {
  const e = foremost(events);
  if (!e) return null;
  const kills = events.filter(isKill).length;
  return (
    <a class={isKill(e) ? 'oomnote kill' : 'oomnote near'} title={sentence(e, utc)}
      href={format({ ...START, service: e.service, range, ...pictureOf(e) })}>
      {eventTitle(e.kind)} at {time(e.time, utc)}{kills > 1 && `, ${kills} times`}
    </a>
  );
}
