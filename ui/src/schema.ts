/* The server's answers. Made by tools/api_types.py from docs/openapi.json: change that instead. */

export interface ErrorBody {
  error: string;
}

export type Mode = 'delta' | 'snapshot';

export type Unit = 'bytes' | 'count' | 'nanoseconds' | 'ppm';

export interface Store {
  bytes: number;
  days: number;
  oldest: number | null;
  samples: number;
  profiles: number;
  profiles_lost: number;
  damaged_files: number;
  damaged_blocks: number;
  corrected_pages: number;
  damage: string | null;
  over_budget: number;
  budget: string | null;
  clock_ahead_ms: number;
  writing: boolean;
  trouble: string | null;
}

export interface Sink {
  sink: string;
  written: number;
  dropped: number;
  failures: number;
  queued: number;
  queued_bytes: number;
  spooled: number;
  spooled_bytes: number;
  spool_lost: number;
  lag_ms: number;
  trouble: string | null;
}

export interface Feature {
  feature: 'cpu' | 'off-cpu' | 'kernel-names' | 'python' | 'go' | 'java' | 'java-counters' | 'oom-kills' | 'oom-limits' | 'host-pids' | 'store';
  title: string;
  state: 'on' | 'limited' | 'off';
  cause: 'disabled' | 'needs_feature' | 'privilege' | 'user_namespace' | 'pid_namespace' | 'seccomp' | 'lockdown' | 'ptrace_scope' | 'hidden' | 'not_mounted' | 'no_btf' | 'kernel' | 'machine' | 'disk' | 'other' | null;
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
  hung_reads: number;
  unanswered_reads: number;
  lost_records: number;
  write_failures: number;
  cpu_samples: number;
  cpu_samples_lost: number;
  cpu_stacks_cut: number;
  oom_kills: number;
  oom_late: number;
  oom_lost: number;
  oom_trouble: string | null;
  trouble: string | null;
  store: Store;
  sinks: Sink[];
  features: Feature[] | null;
}

export interface TypeSeries {
  type: string;
  mode: Mode;
  first: number;
  last: number;
  value: number | null;
  series: (number | null)[];
  damaged?: number;
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

export interface OverviewService {
  id: number;
  service: string;
  runtime: string;
  parent: string;
  short: boolean;
  types: number[];
  first: number;
  last: number;
}

export interface Overview {
  from: number;
  to: number;
  step_ms: number;
  next: number;
  cpus: number;
  memory_kib: number;
  covered_ms: number[];
  machine: (number | (number | null)[])[];
  types: string[];
  services: OverviewService[];
  rows: ((number | (number | null)[])[])[];
  damaged: number;
}

export interface Reader {
  reader: 'cpu' | 'go-heap' | 'go-runtime' | 'go-goroutines' | 'go-block' | 'go-mutex' | 'java-runtime' | 'java-alloc' | 'java-lock' | 'java-cpu';
  family: string;
  available: boolean;
  cause: 'disabled' | 'needs_feature' | 'privilege' | 'user_namespace' | 'pid_namespace' | 'seccomp' | 'lockdown' | 'ptrace_scope' | 'hidden' | 'not_mounted' | 'no_btf' | 'kernel' | 'machine' | 'disk' | 'other' | 'denied' | 'gone' | 'pending' | 'busy' | 'no_answer' | 'opted_out' | 'kernel_thread' | 'not_go' | 'not_java' | 'unknown_version' | 'unsupported' | 'altered' | 'profiling_off' | 'limit' | 'malformed' | null;
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
  start_ticks: number;
  comm: string | null;
  exe: string | null;
  command: string | null;
  service: string | null;
  container: string | null;
  pod: string | null;
  unit: string | null;
  runtime: string | null;
  readers: Reader[];
}

export interface Targets {
  targets: Target[];
}

export interface RegisteredType {
  type: string;
  mode: Mode;
  group: string;
  measure: string;
  variant: string;
  title: string;
  help: string;
}

export interface MetricAttribute {
  key: string;
  label: string;
}

export interface RegisteredMetric {
  metric: string;
  kind: 'gauge' | 'counter' | 'histogram';
  unit: 'bytes' | 'count' | 'nanoseconds' | 'ppm' | 'bool';
  family: string;
  title: string;
  help: string;
  attributes: MetricAttribute[];
  prometheus: string | null;
  stream: string | null;
}

export interface RegisteredEvent {
  event: 'oom_kill' | 'oom_near';
  title: string;
  help: string;
  family: string;
}

export interface Registry {
  types: RegisteredType[];
  metrics: RegisteredMetric[];
  events: RegisteredEvent[];
}

export interface LabelValue {
  value: string;
  first: number;
  last: number;
  build_of?: string;
}

export interface Label {
  key: string;
  values: LabelValue[];
}

export interface Labels {
  labels: Label[];
}

export interface Series {
  from: number;
  to: number;
  step_ms: number;
  unit: Unit;
  mode: Mode;
  points: (number | null)[];
  spread: number[];
  damaged?: number;
}

export interface SeriesOfType {
  type: string;
  unit: Unit;
  mode: Mode;
  points: (number | null)[];
  spread: number[];
  damaged?: number;
}

export interface ManySeries {
  from: number;
  to: number;
  step_ms: number;
  series: SeriesOfType[];
}

export interface Origin {
  kind: 'go' | 'java' | 'python' | 'js' | 'native' | 'runtime' | 'kernel' | 'group' | 'other';
  module: string;
}

export interface NameVariants {
  name: number;
  suffixes: string[];
}

export interface Flame {
  unit: Unit;
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
  variants?: NameVariants[];
  origins: Origin[];
  origin: number[];
  name: number[];
  depth: number[];
  self: number[];
  total_of: number[];
  before_self?: number[];
  before_total_of?: number[];
  damaged?: number;
}

export interface TopRow {
  name: string;
  file: string;
  variants?: string[];
  self: number;
  total: number;
  before_self?: number;
  before_total?: number;
}

export interface Top {
  unit: Unit;
  mode: Mode;
  total: number;
  before_total?: number;
  functions: number;
  rows: TopRow[];
  damaged?: number;
}

export interface FunctionLine {
  file: string;
  line: number;
  self: number;
  total: number;
  before_self?: number;
  before_total?: number;
}

export interface FunctionNeighbour {
  name: string;
  total: number;
  before_total?: number;
}

export interface Function {
  unit: Unit;
  mode: Mode;
  from: number;
  to: number;
  name: string;
  file: string;
  self: number;
  total: number;
  before_self?: number;
  before_total?: number;
  window_total: number;
  before_window_total?: number;
  n_lines: number;
  n_callers: number;
  n_callees: number;
  lines: FunctionLine[];
  callers: FunctionNeighbour[];
  callees: FunctionNeighbour[];
  damaged?: number;
}

export interface FunctionSeries {
  from: number;
  to: number;
  step_ms: number;
  unit: Unit;
  mode: Mode;
  self: (number | null)[];
  total: (number | null)[];
  spread: number[];
  damaged?: number;
}

export interface FunctionSource {
  file: string;
  reason: string | null;
  modified: number | null;
  lines: SourceLine[];
}

export interface SourceLine {
  line: number;
  text: string;
}

export type MetricKind = 'gauge' | 'counter' | 'histogram';

export interface StoredAttribute {
  key: string;
  values: string[];
}

export interface Metric {
  metric: string;
  kind: MetricKind;
  unit: string | null;
  attributes: StoredAttribute[];
  series: number;
  first: number;
  last: number;
}

export interface MetricList {
  from: number;
  to: number;
  metrics: Metric[];
  damaged?: number;
}

export interface MetricLabel {
  key: string;
  value: string;
}

export interface MetricCurve {
  labels: MetricLabel[];
  points: (number | null)[] | null;
  buckets: ((number | null)[])[] | null;
  sums: (number | null)[] | null;
}

export interface MetricCurves {
  from: number;
  to: number;
  step_ms: number;
  metric: string;
  kind: MetricKind;
  unit: string | null;
  aggregate: 'average' | 'min' | 'max' | 'last' | 'sum';
  bounds: number[] | null;
  series: MetricCurve[];
  damaged?: number;
}

export interface OomTop {
  name: string;
  file: string | null;
  self: number;
  share: number;
}

export interface OomEvent {
  kind: 'oom_kill' | 'oom_near';
  time: number;
  service: string;
  pid: number;
  executable: string | null;
  container: string | null;
  rss_bytes: number | null;
  picture: 'kill' | 'earlier' | null;
  inuse_bytes: number | null;
  top: OomTop | null;
}

export interface OomEvents {
  from: number;
  to: number;
  count: number;
  events: OomEvent[];
  damaged?: number;
}
