/* src/pipeline/registry/types.c: the profile types; see registry.h. */
#include "pipeline/registry/registry.h"

#define CPU "CPU"
#define MEMORY "Memory"
#define GOROUTINES "Goroutines"
#define BLOCKING "Blocking"
#define MUTEXES "Mutexes"
#define OOM "Out of memory"

const struct registry_type registry_types[TYPES] = {
	/* family, name, unit, mode, group, measure, variant, title, help */
	[TYPE_JAVA_CPU_TIME] =
		{"java_cpu", "cpu", "nanoseconds", MODE_DELTA, CPU, "cpu", "Time", "CPU (JVM)",
		 "CPU time of Java code, sampled by the recorder of the JVM (JDK 25 and later)."},
	[TYPE_JAVA_CPU_SAMPLES] =
		{"java_cpu", "samples", "count", MODE_DELTA, CPU, "cpu", "Samples",
		 "CPU samples (JVM)",
		 "Samples of Java code taken by the recorder of the JVM (JDK 25 and later)."},
	[TYPE_CPU_TIME] = {"cpu", "cpu", "nanoseconds", MODE_DELTA, CPU, "cpu", "Time", "CPU",
			   "CPU time of every process, estimated from samples."},
	[TYPE_CPU_SAMPLES] = {"cpu", "samples", "count", MODE_DELTA, CPU, "cpu", "Samples",
			      "CPU samples", "The samples that CPU time is estimated from."},
	[TYPE_OFFCPU_TIME] = {"offcpu", "time", "nanoseconds", MODE_DELTA, CPU, "wait", "Time",
			      "Off-CPU time",
			      "Time threads spent waiting, by call stack (with --offcpu)."},
	[TYPE_OFFCPU_WAITS] = {"offcpu", "waits", "count", MODE_DELTA, CPU, "wait", "Waits",
			       "Off-CPU waits", "How often threads waited (with --offcpu)."},
	[TYPE_GO_HEAP_INUSE_SPACE] =
		{"go_heap", "inuse_space", "bytes", MODE_SNAPSHOT, MEMORY, "live", "Bytes",
		 "Live heap",
		 "Memory in use after the last garbage collection, by allocation site."},
	[TYPE_GO_HEAP_INUSE_OBJECTS] =
		{"go_heap", "inuse_objects", "count", MODE_SNAPSHOT, MEMORY, "live", "Objects",
		 "Live objects",
		 "Objects in use after the last garbage collection, by allocation site."},
	[TYPE_GO_HEAP_ALLOC_SPACE] = {"go_heap", "alloc_space", "bytes", MODE_DELTA, MEMORY,
				      "allocated", "Bytes", "Allocation rate",
				      "Bytes allocated, freed or not."},
	[TYPE_GO_HEAP_ALLOC_OBJECTS] = {"go_heap", "alloc_objects", "count", MODE_DELTA, MEMORY,
					"allocated", "Objects", "Allocations",
					"Objects allocated, freed or not."},
	[TYPE_JAVA_ALLOC_SPACE] =
		{"java_alloc", "alloc_space", "bytes", MODE_DELTA, MEMORY, "allocated", "Bytes",
		 "Allocation rate",
		 "Bytes allocated by Java code, sampled by the JVM (with --java)."},
	[TYPE_JAVA_ALLOC_OBJECTS] =
		{"java_alloc", "alloc_objects", "count", MODE_DELTA, MEMORY, "allocated", "Objects",
		 "Allocations", "Objects allocated by Java code (JDK 8 and 11 only, with --java)."},
	[TYPE_GOROUTINE_ALL] = {"go_goroutine", "goroutine", "count", MODE_SNAPSHOT, GOROUTINES,
				"goroutines", "All", "Goroutines",
				"All goroutines, by call stack."},
	[TYPE_GOROUTINE_WAITING] =
		{"go_goroutine", "waiting", "count", MODE_SNAPSHOT, GOROUTINES, "goroutines",
		 "Waiting", "Waiting goroutines",
		 "Goroutines waiting for a channel, lock, timer or the network."},
	[TYPE_GOROUTINE_RUNNABLE] = {"go_goroutine", "runnable", "count", MODE_SNAPSHOT, GOROUTINES,
				     "goroutines", "Runnable", "Runnable goroutines",
				     "Goroutines ready to run, waiting for a CPU."},
	[TYPE_GOROUTINE_RUNNING] = {"go_goroutine", "running", "count", MODE_SNAPSHOT, GOROUTINES,
				    "goroutines", "Running", "Running goroutines",
				    "Goroutines on a CPU."},
	[TYPE_GOROUTINE_SYSCALL] = {"go_goroutine", "syscall", "count", MODE_SNAPSHOT, GOROUTINES,
				    "goroutines", "In syscalls", "Goroutines in syscalls",
				    "Goroutines in a system call."},
	[TYPE_GO_BLOCK_DELAY] =
		{"go_block", "delay", "nanoseconds", MODE_DELTA, BLOCKING, "blocked", "Time",
		 "Blocking",
		 "Time goroutines were blocked on channels and locks, if the program records it."},
	[TYPE_GO_BLOCK_CONTENTIONS] =
		{"go_block", "contentions", "count", MODE_DELTA, BLOCKING, "blocked", "Count",
		 "Blocking events",
		 "How often goroutines were blocked, if the program records it."},
	[TYPE_JAVA_LOCK_DELAY] = {"java_lock", "delay", "nanoseconds", MODE_DELTA, BLOCKING,
				  "blocked", "Time", "Lock waits",
				  "Time threads waited for monitors and locks, in waits of at "
				  "least 1 ms; the leaf is the lock's class (with --java)."},
	[TYPE_JAVA_LOCK_CONTENTIONS] =
		{"java_lock", "contentions", "count", MODE_DELTA, BLOCKING, "blocked", "Count",
		 "Lock wait count",
		 "How often threads waited at least 1 ms for monitors and locks (with --java)."},
	[TYPE_GO_MUTEX_DELAY] =
		{"go_mutex", "delay", "nanoseconds", MODE_DELTA, MUTEXES, "held", "Time",
		 "Mutex delay",
		 "Time others waited for a lock, by its holder, if the program records it."},
	[TYPE_GO_MUTEX_CONTENTIONS] =
		{"go_mutex", "contentions", "count", MODE_DELTA, MUTEXES, "held", "Count",
		 "Mutex contentions",
		 "How often others waited for a lock, by its holder, if the program records it."},
	[TYPE_GO_OOM_INUSE_SPACE] = {"go_oom", "inuse_space", "bytes", MODE_SNAPSHOT, OOM, "moment",
				     "Bytes", "Heap",
				     "Heap when memory ran out, including allocations since the "
				     "last garbage collection."},
	[TYPE_GO_OOM_INUSE_OBJECTS] = {"go_oom", "inuse_objects", "count", MODE_SNAPSHOT, OOM,
				       "moment", "Objects", "Heap objects",
				       "Heap objects when memory ran out, including allocations "
				       "since the last garbage collection."},
	[TYPE_GO_OOM_GOROUTINE] = {"go_oom", "goroutine", "count", MODE_SNAPSHOT, OOM, "moment",
				   "Goroutines", "Goroutines",
				   "Goroutines when memory ran out, from the last collection."},
};
