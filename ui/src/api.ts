/* The server's answers (docs/API.md), typed, and the one place that talks to it. */

/** What works on the machine: of one that is not on, why, and what would help. */
export interface Feature {
  feature: string;
  title: string;
  state: 'on' | 'limited' | 'off';
  cause: string | null;
  reason: string | null;
  remedy: string | null;
}

export interface Health {
  version: string;
  started: number;
  now: number;
  interval_ms: number;
  uptime_ms: number;
  cpu_ms: number;
  cpu_percent: number;
  rss_bytes: number;
  intervals: number;
  lag_ms: number;
  targets: number;
  profiled: number;
  collections: number;
  failures: number;
  lost_records: number;
  cpu_samples: number;
  cpu_samples_lost: number;
  cpu_stacks_cut: number;
  write_failures: number;
  oom_trouble: string | null;
  trouble: string | null;
  store: {
    bytes: number;
    days: number;
    oldest: number | null;
    samples: number;
    profiles: number;
    profiles_lost: number;
    damaged_files: number;
    writing: boolean;
    trouble: string | null;
  };
  features: Feature[] | null;
}

/** Those that people may miss: not what they did not ask for. */
export const missing = (features: Feature[] | null): Feature[] =>
  (features ?? []).filter((f) => f.state !== 'on' && f.cause !== 'disabled');

export type Mode = 'delta' | 'snapshot';

export interface TypeSeries {
  type: string;
  mode: Mode;
  first: number;
  last: number;
  value: number;
  series: (number | null)[];
}

export interface Service {
  service: string;
  types: TypeSeries[];
  processes: number;
}

export interface Services {
  from: number;
  to: number;
  step_ms: number;
  services: Service[];
}

export interface Reader {
  reader: string;
  available: boolean;
  reason: string | null;
  remedy: string | null;
  collections: number;
  failures: number;
  last: number | null;
  cost_us: number;
  slow: boolean;
  trouble: string | null;
}

export interface Target {
  pid: number;
  comm: string;
  exe: string | null;
  service: string | null;
  container: string | null;
  pod: string | null;
  unit: string | null;
  runtime: string | null;
  readers: Reader[];
}

export interface Labels {
  labels: { key: string; values: { value: string; first: number; last: number }[] }[];
}

export interface Series {
  from: number;
  to: number;
  step_ms: number;
  unit: string;
  mode: Mode;
  points: (number | null)[];
}

export interface ManySeries {
  from: number;
  to: number;
  step_ms: number;
  series: { type: string; unit: string; mode: Mode; points: (number | null)[] }[];
}

export interface OomEvent {
  kind: string; // oom_kill or oom_near
  time: number;
  service: string;
  pid: number;
  executable: string | null;
  container: string | null;
  rss_bytes: number | null;
  picture: string | null; // kill or earlier
  inuse_bytes: number | null;
  top: { name: string; file: string | null; self: number; share: number } | null;
}

export interface OomEvents {
  from: number;
  to: number;
  count: number;
  events: OomEvent[];
}

export interface RawFlame {
  unit: string;
  mode: Mode;
  from: number;
  to: number;
  total: number;
  before_total?: number;
  folded: number;
  collections: number;
  other: number;
  names: string[];
  files: string[];
  name: number[];
  depth: number[];
  self: number[];
  total_of: number[];
  before_self?: number[];
  before_total_of?: number[];
}

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
