/* Typed responses of the server (docs/API.md), and the only place that talks to it. */

import type { Feature, Overview as Untupled } from './schema';

export type {
  Feature, Function as FunctionInfo, FunctionLine, FunctionSeries, FunctionSource, Health, Labels, ManySeries, MetricCurves, Mode,
  OomEvent, OomEvents, OverviewService, Flame as RawFlame, Reader, RegisteredEvent,
  RegisteredMetric, RegisteredType, Registry, Series, Service, Services, Target, Targets, TypeSeries,
} from './schema';

type Points = (number | null)[];

/** With the places of its rows, which a schema of JSON cannot tell apart. */
export interface Overview extends Omit<Untupled, 'machine' | 'rows'> {
  machine: [at: number, cpu_ms: Points, memory_kib: Points];
  rows: [id: number, processes: number, at: number, cpu_ms: Points, memory_kib: Points][];
}

/** Features worth a mention: missing, and not turned off on purpose. */
export const missing = (features: Feature[] | null): Feature[] =>
  (features ?? []).filter((f) => f.state !== 'on' && f.cause !== 'disabled');

export class ApiError extends Error {
  constructor(
    message: string,
    readonly status: number,
  ) {
    super(message);
  }
}

/** Nobody answered: the agent is away. */
export const isAway = (error: Error | null) => error instanceof ApiError && error.status === 0;

type Watcher = (there: boolean) => void;
const watchers = new Set<Watcher>();
let there = true;

/** Tells when the server goes away and when it is back. */
export function watchReach(watcher: Watcher): () => void {
  watchers.add(watcher);
  return () => void watchers.delete(watcher);
}

function reached(now: boolean): void {
  if (there === now) return;
  there = now;
  for (const tell of [...watchers]) tell(now);
}

export type Params = [string, string | number][];

export function url(path: string, params: Params = []): string {
  const query = params.map(([k, v]) => `${k}=${encodeURIComponent(String(v))}`).join('&');
  return query ? `${path}?${query}` : path;
}

let waiting = 0;

/** Whether a request is in progress. */
export const busy = () => waiting > 0;

export async function get<T>(address: string, signal?: AbortSignal): Promise<T> {
  waiting++;
  try {
    return await ask<T>(address, signal);
  } finally {
    waiting--;
  }
}

async function ask<T>(address: string, signal?: AbortSignal): Promise<T> {
  let answer: Response;
  try {
    answer = await fetch(address, { signal: signal ?? null, credentials: 'omit' });
  } catch (e) {
    if (signal?.aborted) throw e;
    reached(false);
    throw new ApiError('sonde is not responding. Is it still running? Start it with: sonde run', 0);
  }
  reached(true);
  const text = await answer.text();
  let body: unknown;
  try {
    body = JSON.parse(text);
  } catch {
    throw new ApiError(
      `The response to ${address.split('?')[0]} is not JSON (status ${answer.status}). ` +
        'Is another program listening on this port?',
      answer.status,
    );
  }
  if (!answer.ok) {
    const said = (body as { error?: unknown }).error;
    throw new ApiError(typeof said === 'string' ? said : `status ${answer.status}`, answer.status);
  }
  return body as T;
}
