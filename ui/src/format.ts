/* Numbers, times and names as people read them. Memory counts in 1024s, as Go's tools do. */

const MEMORY = ['B', 'kB', 'MB', 'GB', 'TB', 'PB'];
const COUNT = ['', 'k', 'M', 'G', 'T', 'P'];

function scaled(v: number, base: number, units: string[]): string {
  let i = 0;
  let a = Math.abs(v);
  while (a >= base * 0.9995 && i < units.length - 1) {
    a /= base;
    i++;
  }
  const digits = a >= 100 || a === 0 || (i === 0 && Number.isInteger(a)) ? 0 : a >= 10 ? 1 : 2;
  const unit = units[i] ? `\u2009${units[i]}` : '';
  return `${v < 0 ? '\u2212' : ''}${a.toFixed(digits)}${unit}`;
}

function duration(ns: number): string {
  const a = Math.abs(ns);
  const steps: [number, string][] = [[1, 'ns'], [1e3, 'µs'], [1e6, 'ms'], [1e9, 's'], [60e9, 'min'], [3600e9, 'h']];
  // Seconds up to two minutes, minutes up to two hours.
  const i = a < 1e9 ? steps.findIndex((_, k) => a < steps[k + 1]![0] * 0.9995) : a < 120e9 ? 3 : a < 7200e9 ? 4 : 5;
  return scaled(ns / steps[i]![0], Infinity, [steps[i]![1]]);
}

/** `unit` is the API's unit, with "/s" behind it for a rate; or "cores", see rateUnit(); or "ppm", a share. */
export function value(v: number | null | undefined, unit: string): string {
  if (v == null || !Number.isFinite(v)) return '–';
  if (unit === 'cores') return cores(v / 1e9);
  if (unit === 'ppm') return percent(v, 1e6);
  const rate = unit.endsWith('/s');
  const plain = rate ? unit.slice(0, -2) : unit;
  const text =
    plain === 'nanoseconds' ? duration(v) : plain === 'bytes' ? scaled(v, 1024, MEMORY) : scaled(v, 1000, COUNT);
  return rate ? `${text}/s` : text;
}

function cores(v: number): string {
  const a = Math.abs(v);
  if (a > 0 && a < 0.0005) return `${v < 0 ? '\u2212' : ''}<0.001\u2009cores`;
  // Two digits that count: 0.003, 0.03, 0.30.
  const digits = a >= 100 ? 0 : a >= 10 ? 1 : a >= 0.0095 || a === 0 ? 2 : 3;
  return `${v < 0 ? '\u2212' : ''}${a.toFixed(a === 0 ? 0 : digits)}\u2009${a === 1 ? 'core' : 'cores'}`;
}

export function signed(v: number, unit: string): string {
  return (v > 0 ? '+' : '') + value(v, unit);
}

export function percent(part: number, whole: number): string {
  if (!whole) return '–';
  const p = (100 * part) / whole;
  const a = Math.abs(p);
  if (a === 0) return '0%';
  if (a > 0 && a < 0.01) return '<0.01%';
  return `${p < 0 ? '\u2212' : ''}${a.toFixed(a >= 99.95 ? 0 : a >= 10 ? 1 : 2)}%`;
}

const pad = (n: number) => String(n).padStart(2, '0');

interface Parts {
  date: string;
  hours: string;
  seconds: string;
}

function parts(ms: number, utc: boolean): Parts {
  const d = new Date(utc ? ms : ms - new Date(ms).getTimezoneOffset() * 60e3);
  if (Number.isNaN(d.getTime())) return { date: '?', hours: '?', seconds: '' };
  const date = `${d.getUTCFullYear()}-${pad(d.getUTCMonth() + 1)}-${pad(d.getUTCDate())}`;
  const hours = `${pad(d.getUTCHours())}:${pad(d.getUTCMinutes())}`;
  return { date, hours, seconds: `:${pad(d.getUTCSeconds())}` };
}

/** "12:03:15", with the date before it when that is not today. */
export function time(ms: number, utc: boolean, now = Date.now()): string {
  const { date, hours, seconds } = parts(ms, utc);
  const clockText = hours + seconds;
  return date === parts(now, utc).date ? clockText : `${date} ${clockText}`;
}

/** For an axis: as short as the distance of the ticks allows. */
export function clock(ms: number, utc: boolean, fine: boolean, dated: boolean): string {
  const { date, hours, seconds } = parts(ms, utc);
  return `${dated ? `${date.slice(5)} ` : ''}${hours}${fine ? seconds : ''}`;
}

export function span(ms: number): string {
  const s = Math.round(ms / 1000);
  if (s < 120) return `${s} s`;
  if (s < 7200) return `${+(s / 60).toFixed(1)} min`;
  if (s < 172800) return `${+(s / 3600).toFixed(1)} h`;
  return `${+(s / 86400).toFixed(1)} d`;
}

export function zone(utc: boolean, at = Date.now()): string {
  if (utc) return 'UTC';
  const minutes = -new Date(at).getTimezoneOffset();
  const a = Math.abs(minutes);
  const name = Intl.DateTimeFormat().resolvedOptions().timeZone || 'local';
  return `${name} (UTC${minutes < 0 ? '\u2212' : '+'}${pad(Math.floor(a / 60))}:${pad(a % 60)})`;
}

/** The name without the path of its package: what fits into a bar. */
export function shortName(name: string): string {
  const bracket = name.indexOf('[');
  const head = bracket < 0 ? name : name.slice(0, bracket);
  return name.slice(head.lastIndexOf('/') + 1);
}
