/*
 * src/pipeline/registry/metrics.c: the metrics; see registry.h.
 *
 * Prometheus names never change: dashboards and alerts rely on them.
 */
#include "pipeline/registry/registry.h"

#define NANOSECONDS 1e9 /* of a second */
#define MILLIONTHS 1e6	/* of one */

#define ROW(kind_, name_, unit_, title_, help_, ...)                                               \
	{                                                                                          \
		.kind = kind_, .name = name_, .unit = unit_, .title = title_, .help = help_,       \
		__VA_ARGS__                                                                        \
	}
#define GAUGE(...) ROW(METRIC_GAUGE, __VA_ARGS__)
#define COUNTER(...) ROW(METRIC_COUNTER, __VA_ARGS__)

const struct metric registry_metrics[METRICS] = {
	[METRIC_PROCESS_CPU_TIME] =
		COUNTER("process.cpu.time", "nanoseconds", "CPU time",
			"Sampled CPU time of the process since sonde discovered it.",
			.family = "cpu", .prometheus = "container_cpu_sampled_seconds_total",
			.prometheus_divisor = NANOSECONDS),
	[METRIC_PROCESS_MEMORY] =
		GAUGE("process.memory.usage", "bytes", "Resident memory",
		      "Resident memory of the process (RSS): what it uses of its memory, code "
		      "included.",
		      .family = "process", .prometheus = "container_resident_memory_bytes",
		      .stream = "process:memory:bytes"),

	/* Go: the heap profile, the runtime, block and mutex profiles. */
	[METRIC_GO_PROFILE_ALLOCATED] = COUNTER(
		"go.profile.allocated", "bytes", "Allocated, by profile",
		"Bytes allocated by the Go process since sonde discovered it, scaled from samples.",
		.family = "go_heap", .prometheus = "container_go_alloc_bytes_total"),
	[METRIC_GO_PROFILE_ALLOCATIONS] =
		COUNTER("go.profile.allocations", "count", "Allocations, by profile",
			"Objects allocated by the Go process since sonde discovered it, scaled "
			"from samples.",
			.family = "go_heap", .prometheus = "container_go_alloc_objects_total"),
	[METRIC_GO_HEAP_LIVE] =
		GAUGE("go.heap.live", "bytes", "Live heap",
		      "Live heap after the last garbage collection, plus allocations since.",
		      .family = "go_runtime", .prometheus = "container_go_heap_live_bytes",
		      .stream = "go_runtime:heap_live:bytes"),
	[METRIC_GO_GC_GOAL] =
		GAUGE("go.memory.gc.goal", "bytes", "Heap goal",
		      "Heap size goal of the next garbage collection.", .family = "go_runtime",
		      .prometheus = "container_go_heap_goal_bytes",
		      .stream = "go_runtime:heap_goal:bytes"),
	[METRIC_GO_HEAP_INUSE] =
		GAUGE("go.heap.inuse", "bytes", "Heap spans in use",
		      "Memory in heap spans that hold objects.", .family = "go_runtime",
		      .prometheus = "container_go_heap_inuse_bytes",
		      .stream = "go_runtime:heap_inuse:bytes"),
	[METRIC_GO_MEMORY_USED] =
		GAUGE("go.memory.used", "bytes", "Runtime memory",
		      "Memory the Go runtime holds: heap, stacks and its own, without what it has "
		      "returned to the system.",
		      .family = "go_runtime", .prometheus = "container_go_memory_used_bytes",
		      .stream = "go_runtime:memory_used:bytes"),
	/* Prometheus only: the one before under the name that it had for Go alone. */
	[METRIC_GO_MEMORY_RESIDENT] =
		GAUGE("go.process.memory.usage", "bytes", "Resident memory",
		      "The same as container_resident_memory_bytes, for Go processes.",
		      .family = "go_runtime", .prometheus = "container_go_resident_memory_bytes"),
	[METRIC_GO_MEMORY_LIMIT] =
		GAUGE("go.memory.limit", "bytes", "Memory limit", "GOMEMLIMIT, if set.",
		      .family = "go_runtime", .prometheus = "container_go_memory_limit_bytes",
		      .stream = "go_runtime:memory_limit:bytes"),
	/* Prometheus has both under one name: by state if known. */
	[METRIC_GO_GOROUTINES] =
		GAUGE("go.goroutine.count", "count", "Goroutines", "Goroutines.",
		      .family = "go_runtime", .stream = "go_runtime:goroutines:count"),
	[METRIC_GO_GOROUTINE_STATES] =
		GAUGE("go.goroutine.state.count", "count", "Goroutines by state",
		      "Goroutines; by state (waiting, runnable, running, syscall) if profiled.",
		      .family = "go_goroutine", .prometheus = "container_go_goroutines",
		      .attributes = {"go.goroutine.state"}, .labels = {"state"}),
	[METRIC_GO_PROCESSORS] = GAUGE(
		"go.processor.limit", "count", "GOMAXPROCS",
		"GOMAXPROCS: threads that can run Go code at once.", .family = "go_runtime",
		.prometheus = "container_go_gomaxprocs", .stream = "go_runtime:gomaxprocs:count"),
	[METRIC_GO_GC_CYCLES] =
		COUNTER("go.memory.gc.cycles", "count", "GC cycles",
			"Garbage collections since the program started.", .family = "go_runtime",
			.prometheus = "container_go_gc_cycles_total",
			.stream = "go_runtime:gc_cycles:count"),
	[METRIC_GO_GC_PAUSE] = COUNTER(
		"go.memory.gc.pause.time", "nanoseconds", "GC pauses",
		"Total stop-the-world pause time of garbage collections.", .family = "go_runtime",
		.prometheus = "container_go_gc_pause_seconds_total",
		.prometheus_divisor = NANOSECONDS, .stream = "go_runtime:gc_pause:nanoseconds"),
	[METRIC_GO_GC_CPU_FRACTION] =
		GAUGE("go.memory.gc.cpu.fraction", "ppm", "GC CPU",
		      "Share of CPU time spent in garbage collection since the program started.",
		      .family = "go_runtime", .prometheus = "container_go_gc_cpu_fraction",
		      .prometheus_divisor = MILLIONTHS, .stream = "go_runtime:gc_cpu_fraction:ppm"),
	[METRIC_GO_ALLOCATED] = COUNTER("go.memory.allocated", "bytes", "Allocated",
					"Bytes allocated, as counted by the runtime.",
					.family = "go_runtime", .stream = "go_runtime:alloc:bytes"),
	[METRIC_GO_BLOCK_CONTENTIONS] =
		COUNTER("go.block.contentions", "count", "Blocking events",
			"Waits in the block profile since sonde discovered the process, if the "
			"program records it.",
			.family = "go_block", .prometheus = "container_go_block_contentions_total"),
	[METRIC_GO_BLOCK_DELAY] = COUNTER(
		"go.block.delay", "nanoseconds", "Blocking",
		"Time waited in the block profile since sonde discovered the process.",
		.family = "go_block", .prometheus = "container_go_block_delay_seconds_total",
		.prometheus_divisor = NANOSECONDS),
	[METRIC_GO_MUTEX_CONTENTIONS] =
		COUNTER("go.mutex.contentions", "count", "Mutex contentions",
			"Waits for mutexes in the mutex profile since sonde discovered the "
			"process, if the program records it.",
			.family = "go_mutex", .prometheus = "container_go_mutex_contentions_total"),
	[METRIC_GO_MUTEX_DELAY] = COUNTER(
		"go.mutex.delay", "nanoseconds", "Mutex delay",
		"Time waited for mutexes in the mutex profile since sonde discovered the process.",
		.family = "go_mutex", .prometheus = "container_go_mutex_delay_seconds_total",
		.prometheus_divisor = NANOSECONDS),

	/* JVMs: their own counters, and their profiles. */
	[METRIC_JVM_INFO] = GAUGE("jvm.info", "bool", "JVM", "JVM and JDK version; always 1.",
				  .family = "java_runtime", .prometheus = "container_jvm_info",
				  .attributes = {"process.runtime.name", "process.runtime.version"},
				  .labels = {"vm", "version"}),
	[METRIC_JVM_UPTIME] = GAUGE(
		"jvm.uptime", "nanoseconds", "Uptime", "JVM uptime.", .family = "java_runtime",
		.prometheus = "container_jvm_uptime_seconds", .prometheus_divisor = NANOSECONDS),
	[METRIC_JVM_MEMORY_USED] =
		GAUGE("jvm.memory.used", "bytes", "Heap used",
		      "Bytes in use in each heap space, as of the last garbage collection.",
		      .family = "java_runtime", .prometheus = "container_jvm_heap_used_bytes",
		      .attributes = {"jvm.memory.generation", "jvm.memory.pool.name"},
		      .labels = {"generation", "space"}),
	[METRIC_JVM_MEMORY_COMMITTED] = GAUGE(
		"jvm.memory.committed", "bytes", "Heap size", "Committed size of each heap space.",
		.family = "java_runtime", .prometheus = "container_jvm_heap_size_bytes",
		.attributes = {"jvm.memory.generation", "jvm.memory.pool.name"},
		.labels = {"generation", "space"}),
	[METRIC_JVM_METASPACE_USED] =
		GAUGE("jvm.metaspace.used", "bytes", "Metaspace used", "Metaspace in use.",
		      .family = "java_runtime", .prometheus = "container_jvm_metaspace_used_bytes"),
	[METRIC_JVM_METASPACE_COMMITTED] =
		GAUGE("jvm.metaspace.committed", "bytes", "Metaspace size", "Metaspace committed.",
		      .family = "java_runtime", .prometheus = "container_jvm_metaspace_size_bytes"),
	[METRIC_JVM_GC_COLLECTIONS] =
		COUNTER("jvm.gc.collections", "count", "Garbage collections",
			"Garbage collections, by garbage collector.", .family = "java_runtime",
			.prometheus = "container_jvm_gc_collections_total",
			.attributes = {"jvm.gc.name"}, .labels = {"gc"}),
	[METRIC_JVM_GC_TIME] = COUNTER(
		"jvm.gc.time", "nanoseconds", "GC time",
		"Time spent in garbage collections, by garbage collector.",
		.family = "java_runtime", .prometheus = "container_jvm_gc_time_seconds_total",
		.prometheus_divisor = NANOSECONDS, .attributes = {"jvm.gc.name"}, .labels = {"gc"}),
	[METRIC_JVM_GC_CPU_TIME] = COUNTER(
		"jvm.gc.cpu.time", "nanoseconds", "GC CPU time",
		"CPU time of the garbage collector's threads (JDK 21 and later).",
		.family = "java_runtime", .prometheus = "container_jvm_gc_cpu_seconds_total",
		.prometheus_divisor = NANOSECONDS),
	[METRIC_JVM_SAFEPOINTS] =
		COUNTER("jvm.safepoint.count", "count", "Safepoints",
			"Safepoints: times all threads were stopped.", .family = "java_runtime",
			.prometheus = "container_jvm_safepoints_total"),
	[METRIC_JVM_SAFEPOINT_TIME] =
		COUNTER("jvm.safepoint.time", "nanoseconds", "Safepoint time",
			"Time with all threads stopped at a safepoint.", .family = "java_runtime",
			.prometheus = "container_jvm_safepoint_time_seconds_total",
			.prometheus_divisor = NANOSECONDS),
	[METRIC_JVM_SAFEPOINT_SYNC_TIME] =
		COUNTER("jvm.safepoint.sync.time", "nanoseconds", "Safepoint sync time",
			"Time to bring all threads to a safepoint.", .family = "java_runtime",
			.prometheus = "container_jvm_safepoint_sync_time_seconds_total",
			.prometheus_divisor = NANOSECONDS),
	[METRIC_JVM_THREADS] =
		GAUGE("jvm.thread.count", "count", "Threads", "Live Java threads.",
		      .family = "java_runtime", .prometheus = "container_jvm_threads"),
	[METRIC_JVM_THREADS_DAEMON] = GAUGE("jvm.thread.daemon.count", "count", "Daemon threads",
					    "Live Java daemon threads.", .family = "java_runtime",
					    .prometheus = "container_jvm_threads_daemon"),
	[METRIC_JVM_THREADS_STARTED] = COUNTER("jvm.thread.started", "count", "Threads started",
					       "Java threads started.", .family = "java_runtime",
					       .prometheus = "container_jvm_threads_started_total"),
	[METRIC_JVM_CLASSES_LOADED] = COUNTER("jvm.class.loaded", "count", "Classes loaded",
					      "Classes loaded.", .family = "java_runtime",
					      .prometheus = "container_jvm_classes_loaded_total"),
	[METRIC_JVM_CLASSES_UNLOADED] = COUNTER(
		"jvm.class.unloaded", "count", "Classes unloaded", "Classes unloaded.",
		.family = "java_runtime", .prometheus = "container_jvm_classes_unloaded_total"),
	[METRIC_JVM_PROFILING] =
		GAUGE("jvm.profiling", "bool", "Profiling",
		      "1 if allocations and locks of the JVM are being profiled (mode: jfr, jvmti "
		      "or async-profiler), otherwise 0 with the reason.",
		      .family = "java_alloc", .prometheus = "container_jvm_profiling_status",
		      .attributes = {"jvm.profiling.mode", "jvm.profiling.reason"},
		      .labels = {"mode", "reason"}),
	[METRIC_JVM_ALLOCATED] =
		COUNTER("jvm.profile.allocated", "bytes", "Allocated, by profile",
			"Bytes allocated by the JVM since sonde started profiling it, scaled from "
			"samples (with --java).",
			.family = "java_alloc", .prometheus = "container_jvm_alloc_bytes_total"),
	[METRIC_JVM_LOCK_CONTENTIONS] = COUNTER(
		"jvm.lock.contentions", "count", "Lock waits",
		"Lock waits of at least 1 ms since sonde started profiling the JVM, by kind: "
		"monitor (synchronized) or park (java.util.concurrent) (with --java).",
		.family = "java_lock", .prometheus = "container_jvm_lock_contentions_total",
		.attributes = {"jvm.lock.kind"}, .labels = {"kind"}),
	[METRIC_JVM_LOCK_TIME] = COUNTER("jvm.lock.time", "nanoseconds", "Lock wait time",
					 "Time waited for locks since sonde started profiling the "
					 "JVM, by kind (with --java).",
					 .family = "java_lock",
					 .prometheus = "container_jvm_lock_time_seconds_total",
					 .prometheus_divisor = NANOSECONDS,
					 .attributes = {"jvm.lock.kind"}, .labels = {"kind"}),
	[METRIC_JVM_LOST_SAMPLES] =
		COUNTER("jvm.profile.lost", "count", "Events lost",
			"Events of the JVM's recording that were lost (with --java).",
			.family = "java_alloc", .prometheus = "container_jvm_lost_samples_total"),

	/* The machine: /proc/stat and /proc/meminfo. */
	[METRIC_SYSTEM_CPU_TIME] = COUNTER(
		"system.cpu.time", "nanoseconds", "CPU time of the machine",
		"CPU time of all CPUs since boot, by mode: user, nice, system, idle, "
		"iowait, interrupt or steal.",
		.family = "system", .prometheus = "system_cpu_seconds_total",
		.prometheus_divisor = NANOSECONDS, .attributes = {"cpu.mode"}, .labels = {"mode"}),
	[METRIC_SYSTEM_CPU_BUSY] =
		COUNTER("system.cpu.busy", "nanoseconds", "Busy CPUs",
			"CPU time of all CPUs in every mode but idle and iowait.",
			.family = "system", .stream = "system:cpu_busy:nanoseconds"),
	[METRIC_SYSTEM_CPUS] = GAUGE("system.cpu.logical.count", "count", "CPUs", "CPUs online.",
				     .family = "system", .prometheus = "system_cpus"),
	[METRIC_SYSTEM_MEMORY] =
		GAUGE("system.memory.usage", "bytes", "Memory by state",
		      "Memory of the machine, by state: used, free, buffers or cached.",
		      .family = "system", .prometheus = "system_memory_usage_bytes",
		      .attributes = {"system.memory.state"}, .labels = {"state"}),
	[METRIC_SYSTEM_MEMORY_USED] = GAUGE(
		"system.memory.used", "bytes", "Memory in use",
		"Memory of the machine that is not available to programs.", .family = "system",
		.prometheus = "system_memory_used_bytes", .stream = "system:memory_used:bytes"),
	[METRIC_SYSTEM_MEMORY_LIMIT] = GAUGE(
		"system.memory.limit", "bytes", "Memory of the machine", "Memory of the machine.",
		.family = "system", .prometheus = "system_memory_limit_bytes"),

	/* sonde itself, and its store. */
	[METRIC_SONDE_INFO] = GAUGE("sonde.info", "bool", "Version", "Version of sonde; always 1.",
				    .family = "sonde", .prometheus = "sonde_build_info",
				    .attributes = {"service.version"}, .labels = {"version"}),
	[METRIC_SONDE_FEATURE_ON] = GAUGE("sonde.feature.on", "bool", "Feature on",
					  "1 if the feature works for all processes, otherwise 0; "
					  "see /api/health for the reason.",
					  .family = "sonde", .prometheus = "sonde_feature_on",
					  .attributes = {"sonde.feature"}, .labels = {"feature"}),
	[METRIC_SONDE_TARGETS] = GAUGE("sonde.targets", "count", "Targets", "Processes seen.",
				       .family = "sonde", .prometheus = "sonde_targets"),
	[METRIC_SONDE_TARGETS_PROFILED] =
		GAUGE("sonde.targets.profiled", "count", "Targets profiled", "Processes profiled.",
		      .family = "sonde", .prometheus = "sonde_targets_profiled"),
	[METRIC_SONDE_INTERVALS] = COUNTER(
		"sonde.intervals", "count", "Intervals", "Collection intervals since the start.",
		.family = "sonde", .prometheus = "sonde_intervals_total"),
	[METRIC_SONDE_LAG] =
		GAUGE("sonde.lag", "nanoseconds", "Lag",
		      "Delay of the last collection interval, or of this one if it is late.",
		      .family = "sonde", .prometheus = "sonde_lag_seconds",
		      .prometheus_divisor = NANOSECONDS),
	/* Stored only: without them nothing that was not seen is known to be zero. */
	[METRIC_SONDE_COVERED] =
		COUNTER("sonde.covered", "nanoseconds", "Time covered",
			"Time in which the CPUs were sampled, by source (cpu, offcpu).",
			.family = "sonde", .attributes = {"sonde.source"}, .labels = {"source"}),
	[METRIC_SONDE_SPREAD] = COUNTER(
		"sonde.spread", "nanoseconds", "Time spread",
		"Time of which the samples came late, and are spread evenly over it, by source.",
		.family = "sonde", .attributes = {"sonde.source"}, .labels = {"source"}),
	[METRIC_SONDE_COLLECTIONS] =
		COUNTER("sonde.collections", "count", "Collections", "Profiles collected.",
			.family = "sonde", .prometheus = "sonde_collections_total"),
	[METRIC_SONDE_COLLECTION_FAILURES] = COUNTER(
		"sonde.collection.failures", "count", "Failed collections", "Failed collections.",
		.family = "sonde", .prometheus = "sonde_collection_failures_total"),
	[METRIC_SONDE_LOST_RECORDS] =
		COUNTER("sonde.lost.records", "count", "Lost records",
			"Records of processes that could not be read.", .family = "sonde",
			.prometheus = "sonde_lost_records_total"),
	[METRIC_SONDE_WRITE_FAILURES] =
		COUNTER("sonde.write.failures", "count", "Failed writes",
			"Profiles that could not be written to a sink.", .family = "sonde",
			.prometheus = "sonde_write_failures_total"),
	[METRIC_SONDE_RECORDS_DROPPED] =
		COUNTER("sonde.records.dropped", "count", "Records dropped",
			"Records dropped by a sink, because it was too slow or refused them.",
			.family = "sonde", .prometheus = "sonde_records_dropped_total"),
	[METRIC_SONDE_CPU_SAMPLES] =
		COUNTER("sonde.cpu.samples", "count", "CPU samples", "Stacks sampled on all CPUs.",
			.family = "sonde", .prometheus = "sonde_cpu_samples_total"),
	[METRIC_SONDE_CPU_SAMPLES_LOST] =
		COUNTER("sonde.cpu.samples.lost", "count", "CPU samples lost", "CPU samples lost.",
			.family = "sonde", .prometheus = "sonde_cpu_samples_lost_total"),
	[METRIC_SONDE_CPU_STACKS_CUT] =
		COUNTER("sonde.cpu.stacks.cut", "count", "Truncated CPU stacks",
			"Samples with a truncated stack.", .family = "sonde",
			.prometheus = "sonde_cpu_stacks_cut_total"),
	[METRIC_SONDE_CPU_TIME] =
		COUNTER("sonde.cpu.time", "nanoseconds", "CPU time of sonde",
			"CPU time used by sonde.", .family = "sonde",
			.prometheus = "sonde_cpu_seconds_total", .prometheus_divisor = NANOSECONDS),
	[METRIC_SONDE_MEMORY] = GAUGE("sonde.memory.resident", "bytes", "Memory of sonde",
				      "Resident memory of sonde.", .family = "sonde",
				      .prometheus = "sonde_resident_memory_bytes"),
	[METRIC_SONDE_STORE_SIZE] =
		GAUGE("sonde.store.size", "bytes", "Store", "Size of the store on disk.",
		      .family = "sonde", .prometheus = "sonde_store_bytes"),
	[METRIC_SONDE_STORE_WRITING] =
		GAUGE("sonde.store.writing", "bool", "Store writable",
		      "1 if the store is writable, otherwise 0.", .family = "sonde",
		      .prometheus = "sonde_store_writing"),
	[METRIC_SONDE_STORE_DAMAGED] =
		GAUGE("sonde.store.damaged", "count", "Damaged files", "Damaged files moved aside.",
		      .family = "sonde", .prometheus = "sonde_store_damaged_files"),
	[METRIC_SONDE_STORE_SAMPLES] =
		COUNTER("sonde.store.samples", "count", "Samples stored", "Samples written.",
			.family = "sonde", .prometheus = "sonde_store_samples_total"),
	[METRIC_SONDE_STORE_PROFILES] =
		COUNTER("sonde.store.profiles", "count", "Profiles stored", "Profiles written.",
			.family = "sonde", .prometheus = "sonde_store_profiles_total"),
	[METRIC_SONDE_STORE_PROFILES_LOST] =
		COUNTER("sonde.store.profiles.lost", "count", "Profiles lost",
			"Profiles that could not be written.", .family = "sonde",
			.prometheus = "sonde_store_profiles_lost_total"),
	[METRIC_SONDE_STORE_SERIES] = GAUGE("sonde.store.series", "count", "Series stored",
					    "Metric series written in the current hour.",
					    .family = "sonde", .prometheus = "sonde_store_series"),
	[METRIC_SONDE_STORE_SERIES_REFUSED] =
		COUNTER("sonde.store.series.refused", "count", "Points refused",
			"Points refused because their service, or the store, has too many series.",
			.family = "sonde", .prometheus = "sonde_store_series_refused_total"),
	[METRIC_SONDE_STORE_POINTS] =
		COUNTER("sonde.store.points", "count", "Points stored", "Metric points written.",
			.family = "sonde", .prometheus = "sonde_store_points_total"),
	[METRIC_SONDE_STORE_POINTS_LOST] =
		COUNTER("sonde.store.points.lost", "count", "Points lost",
			"Metric points that could not be written.", .family = "sonde",
			.prometheus = "sonde_store_points_lost_total"),
	[METRIC_SONDE_STORE_EVENTS] =
		COUNTER("sonde.store.events", "count", "Events stored", "Events written.",
			.family = "sonde", .prometheus = "sonde_store_events_total"),
	[METRIC_SONDE_STORE_EVENTS_LOST] =
		COUNTER("sonde.store.events.lost", "count", "Events lost",
			"Events that could not be written.", .family = "sonde",
			.prometheus = "sonde_store_events_lost_total"),
	[METRIC_SONDE_STORE_DAMAGED_BLOCKS] =
		GAUGE("sonde.store.damaged.blocks", "count", "Damaged blocks",
		      "Damaged pages and blocks, missing from answers.", .family = "sonde",
		      .prometheus = "sonde_store_damaged_blocks"),
	[METRIC_SONDE_STORE_CORRECTED_PAGES] =
		GAUGE("sonde.store.corrected.pages", "count", "Corrected pages",
		      "Damaged pages of which nothing is missing: one flipped bit, or they can "
		      "be made anew from others.",
		      .family = "sonde", .prometheus = "sonde_store_corrected_pages"),
	[METRIC_SONDE_STORE_OVER_BUDGET] =
		COUNTER("sonde.store.over.budget", "count", "Over budget",
			"Stacks, label sets, series and services stored as (other), or not at all, "
			"because a service or a user has too many.",
			.family = "sonde", .prometheus = "sonde_store_over_budget_total"),
};
