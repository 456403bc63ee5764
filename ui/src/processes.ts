/* How many processes a window had, to compare what each of them did. */
import { url, type Labels } from './api';
import type { Profile } from './flame/layout';
import { index } from './flame/layout';
import { useQuery } from './query';
import type { Window } from './state';

/** On average: a process counts for the part of the window in which it was collected. */
export function processesIn(labels: Labels, w: Window, interval: number): number {
  const pids = labels.labels.find((l) => l.key === 'process.pid')?.values ?? [];
  const lived = pids.map((v) => Math.min(v.last, w.to) - Math.max(v.first, w.from) + interval);
  return lived.reduce((sum, ms) => sum + Math.max(0, Math.min(ms, w.to - w.from)), 0) / (w.to - w.from);
}

/** Averages of both windows; null without a comparison per process, or while they are not known. */
export function useProcesses(service: string, w: Window, base: Window | null, on: boolean, interval: number): [number, number] | null {
  const ask = (x: Window | null) =>
    on && x ? url('/api/labels', [['service', service], ['from', Math.round(x.from)], ['to', Math.round(x.to)]]) : null;
  const now = useQuery<Labels>(ask(base && w)).data;
  const before = useQuery<Labels>(ask(base)).data;
  if (!now || !before || !base) return null;
  const counts: [number, number] = [processesIn(now, w, interval), processesIn(before, base, interval)];
  return counts[0] > 0 && counts[1] > 0 ? counts : null;
}

const scaled = (a: Float64Array, by: number) => a.map((v) => v / by);

export function perProcess(p: Profile, [now, before]: [number, number]): Profile {
  return index(
    {
      ...p,
      self: scaled(p.self, now), total: scaled(p.total, now),
      beforeSelf: scaled(p.beforeSelf, before), beforeTotal: scaled(p.beforeTotal, before),
    },
    { ...p, folded: p.folded / now },
  );
}
