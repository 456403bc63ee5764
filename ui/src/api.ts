/* The server's answers (docs/API.md), typed, and the one place that talks to it. */

import type { Feature } from './schema';

export type {
  Feature, Health, Labels, ManySeries, Mode, OomEvent, OomEvents, Flame as RawFlame, Reader, RegisteredEvent,
  RegisteredMetric, RegisteredType, Registry, Series, Service, Services, Target, Targets, TypeSeries,
} from './schema';

/** Those that people may miss: not what they did not ask for. */
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

/** Whether an answer is still on its way. */
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
    throw new ApiError('sonde does not answer. Is it still running? Start it again with: sonde run', 0);
  }
  const text = await answer.text();
  let body: unknown;
  try {
    body = JSON.parse(text);
  } catch {
    throw new ApiError(
      `The answer to ${address.split('?')[0]} was not JSON (status ${answer.status}). ` +
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
