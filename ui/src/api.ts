/* Typed responses of the server (docs/API.md), and the only place that talks to it. */

import type { Feature } from './schema';

export type {
  Feature, Function as FunctionInfo, FunctionLine, FunctionSeries, Health, Labels, ManySeries, MetricCurves, Mode, OomEvent, OomEvents, Flame as RawFlame, Reader, RegisteredEvent,
  RegisteredMetric, RegisteredType, Registry, Series, Service, Services, Target, Targets, TypeSeries,
} from './schema';

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
    throw new ApiError('sonde is not responding. Is it still running? Start it with: sonde run', 0);
  }
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
