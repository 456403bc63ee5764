/*
 * src/java/agent_lib/agent.c: the library loaded into a JVM whose own recorder cannot be used.
 *
 * It samples allocations, measures waits for locks, and writes both into its session's ring. It
 * has no thread: decisions are made when an event arrives, so an idle JVM is never woken, and once
 * sonde has exited, the library disables itself at the next event. A JVM never unloads a library;
 * after the end, no event is enabled, no capability held, and only the library itself stays mapped.
 *
 * Any failure here costs at most one event. Only functions that every C library has are called, and
 * none is linked: it runs wherever a JVM runs.
 */
#include <stddef.h>
#include <string.h>

#include "java/agent_lib/park.h"
#include "java/agent_lib/session.h"

#define DEFAULT_INTERVAL (512u << 10) /* the JVM's default for new threads */
#define MIN_INTERVAL (64u << 10)
#define MAX_INTERVAL (1u << 30)
#define MIN_WAIT_NS 100000ULL
#define MAX_WAIT_NS 1000000000ULL
#define FIRST_WAIT_NS 1000000ULL

/* Target rate: about 150 events a second, whatever the load. */
#define PACE_NS 6666667ULL
#define PACE_WINDOW_NS 1000000000ULL
#define PACE_WINDOW_EVENTS 64

struct pace {
	uint64_t begin_ns;
	uint64_t events;
	uint32_t is_busy;
};

/* A thread draws its next sample at the current one, so with the interval of that time. */
#define MAX_DRAWN 4096
struct drawn {
	jvm thread; /* its JNI environment */
	uint64_t interval_bytes;
};

static struct {
	jvm ti;
	uint64_t interval_bytes;
	uint64_t wait_ns; /* waits are added up until they reach this */
	uint64_t pending_ns, pending_waits;
	struct pace allocs, locks;
	struct drawn drawn[MAX_DRAWN];
} agent;

static void wanted_capabilities(uint32_t wanted, uint64_t bits[TI_CAPABILITY_WORDS])
{
	bits[0] = 1ULL << TI_CAN_GET_LINE_NUMBERS;
	bits[1] = 0;
	if (wanted & JAVA_RING_ALLOCS)
		bits[0] |= 1ULL << TI_CAN_GENERATE_SAMPLED_OBJECT_ALLOC_EVENTS;
	if (wanted & JAVA_RING_LOCKS)
		bits[0] |= 1ULL << TI_CAN_GENERATE_MONITOR_EVENTS;
}

/* Undoes everything, and releases the capability for other samplers. */
static void agent_disable(jvm jni)
{
	uint64_t bits[TI_CAPABILITY_WORDS];

	java_park_stop(jni);
	(void)ti_set_event(agent.ti, 0, TI_EVENT_SAMPLED_OBJECT_ALLOC);
	(void)ti_set_event(agent.ti, 0, TI_EVENT_CONTENDED_ENTER);
	(void)ti_set_event(agent.ti, 0, TI_EVENT_CONTENDED_ENTERED);
	(void)ti_set_sampling_interval(agent.ti, DEFAULT_INTERVAL);
	wanted_capabilities(JAVA_RING_ALLOCS | JAVA_RING_LOCKS, bits);
	(void)ti_relinquish_capabilities(agent.ti, bits);
}

/*
 * How the number of events should change, as a power of two: fewer if more than twice the target,
 * more if less than a quarter. 0 if it is right, or too early to tell.
 */
static int pace_step(struct pace *p, uint64_t now)
{
	uint64_t events = __atomic_add_fetch(&p->events, 1, __ATOMIC_RELAXED);
	uint64_t begin = __atomic_load_n(&p->begin_ns, __ATOMIC_RELAXED);
	uint64_t passed = now > begin ? now - begin : 0;
	int step = 0;

	if ((events < PACE_WINDOW_EVENTS && passed < PACE_WINDOW_NS) ||
	    __atomic_exchange_n(&p->is_busy, 1, __ATOMIC_ACQUIRE))
		return 0;
	if (events * PACE_NS > passed * 8)
		step = 2;
	else if (events * PACE_NS > passed * 2)
		step = 1;
	else if (events * PACE_NS * 4 < passed)
		step = -1;
	__atomic_store_n(&p->begin_ns, now, __ATOMIC_RELAXED);
	__atomic_store_n(&p->events, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&p->is_busy, 0, __ATOMIC_RELEASE);
	return step;
}

static uint64_t stepped(uint64_t value, int step, uint64_t min, uint64_t max)
{
	value = step > 0 ? value << step : value >> -step;
	return value < min ? min : value > max ? max : value;
}

static void adapt_allocs(struct java_session *s, uint64_t now)
{
	uint64_t before = __atomic_load_n(&agent.interval_bytes, __ATOMIC_RELAXED);
	int step = pace_step(&agent.allocs, now);
	uint64_t after = stepped(before, step, MIN_INTERVAL, MAX_INTERVAL);

	if (after == before || ti_set_sampling_interval(agent.ti, (int32_t)after) != 0)
		return;
	__atomic_store_n(&agent.interval_bytes, after, __ATOMIC_RELAXED);
	java_session_tell(s, after);
}

static void adapt_locks(uint64_t now)
{
	uint64_t before = __atomic_load_n(&agent.wait_ns, __ATOMIC_RELAXED);
	int step = pace_step(&agent.locks, now);

	__atomic_store_n(&agent.wait_ns, stepped(before, step, MIN_WAIT_NS, MAX_WAIT_NS),
			 __ATOMIC_RELAXED);
}

/* The interval this sample was drawn with; the next one is drawn with the current interval. */
static uint64_t drawn_with(jvm thread, uint64_t interval_now)
{
	uint32_t at = (uint32_t)(((uintptr_t)thread >> 4) * 0x9e3779b1u >> 20);

	for (uint32_t i = 0; i < 16; i++) {
		struct drawn *d = &agent.drawn[(at + i) & (MAX_DRAWN - 1)];
		jvm there = __atomic_load_n(&d->thread, __ATOMIC_RELAXED);
		uint64_t drawn;

		if (!there && __atomic_compare_exchange_n(&d->thread, &there, thread, false,
							  __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
			__atomic_store_n(&d->interval_bytes, interval_now, __ATOMIC_RELAXED);
			return interval_now;
		}
		if (there != thread)
			continue;
		drawn = __atomic_exchange_n(&d->interval_bytes, interval_now, __ATOMIC_RELAXED);
		return drawn ? drawn : interval_now;
	}
	return interval_now;
}

static void write_event(struct java_session *s, jvm ti, jvm jni, jvm_object thread,
			jvm_object class, struct java_session_event e)
{
	struct jvm_frame frames[JAVA_RING_MAX_DEPTH + 1];
	uint32_t ids[JAVA_RING_MAX_DEPTH], depth = java_session_depth(s);
	struct jvm_thread_info info = {0};
	char *class_name = NULL;
	int32_t n = 0;

	/* One more than we keep, to detect truncation. */
	if (ti_get_stack(ti, thread, (int32_t)depth + 1, frames, &n) != 0 || n < 0)
		n = 0;
	if ((uint32_t)n > depth) {
		e.flags |= JAVA_RING_TRUNCATED;
		n = (int32_t)depth;
	}
	for (int32_t i = 0; i < n; i++)
		ids[i] = java_session_frame(s, ti, jni, &frames[i]);
	e.frames = ids;
	e.n_frames = (uint32_t)n;
	if (class && ti_get_class_signature(ti, class, &class_name) != 0)
		class_name = NULL;
	if (ti_get_thread_info(ti, thread, &info) != 0)
		info = (struct jvm_thread_info){0};
	e.class = class_name;
	e.thread = info.name;
	java_session_write(s, &e);
	ti_deallocate(ti, class_name);
	ti_deallocate(ti, info.name);
	if (info.group)
		jni_delete_local_ref(jni, info.group);
	if (info.class_loader)
		jni_delete_local_ref(jni, info.class_loader);
}

/* True while sonde is alive; otherwise ends the session. */
static bool is_wanted(struct java_session *s, jvm jni, uint64_t now)
{
	if (!java_session_is_forgotten(s, now))
		return true;
	if (java_session_end(s))
		agent_disable(jni);
	return false;
}

static void on_alloc(jvm ti, jvm jni, jvm_object thread, jvm_object object, jvm_object class,
		     int64_t size)
{
	struct java_session *s = java_session_enter();
	uint64_t now = java_session_now_ns();

	(void)object;
	if (!s)
		return;
	if (is_wanted(s, jni, now)) {
		uint64_t interval = __atomic_load_n(&agent.interval_bytes, __ATOMIC_RELAXED);
		struct java_session_event e = {.kind = JAVA_RING_ALLOC,
					       .a = size > 0 ? (uint64_t)size : 0};

		adapt_allocs(s, now);
		e.b = drawn_with(jni, interval);
		write_event(s, ti, jni, thread, class, e);
	}
	java_session_leave(s);
}

/* The time is kept in thread-local storage, where a virtual thread finds it again. */
static void on_enter(jvm ti, jvm jni, jvm_object thread, jvm_object object)
{
	(void)jni;
	(void)thread;
	(void)object;
	(void)ti_set_local(ti, (const void *)(uintptr_t)java_session_now_ns());
}

/* Adds up short waits; the wait that completes the sum gets all of it. */
static void on_wait(struct java_session *s, jvm ti, jvm jni, jvm_object thread, jvm_object object,
		    uint64_t ns)
{
	uint64_t sum = __atomic_add_fetch(&agent.pending_ns, ns, __ATOMIC_RELAXED);
	struct java_session_event e = {.kind = JAVA_RING_LOCK};
	jvm_object class;

	(void)__atomic_add_fetch(&agent.pending_waits, 1, __ATOMIC_RELAXED);
	if (sum < __atomic_load_n(&agent.wait_ns, __ATOMIC_RELAXED))
		return;
	e.a = __atomic_exchange_n(&agent.pending_ns, 0, __ATOMIC_RELAXED);
	e.b = __atomic_exchange_n(&agent.pending_waits, 0, __ATOMIC_RELAXED);
	if (e.a == 0)
		return;
	class = jni_get_object_class(jni, object);
	write_event(s, ti, jni, thread, class, e);
	if (class)
		jni_delete_local_ref(jni, class);
}

static void on_entered(jvm ti, jvm jni, jvm_object thread, jvm_object object)
{
	struct java_session *s = java_session_enter();
	uint64_t now = java_session_now_ns(), begin;
	void *local = NULL;

	if (!s)
		return;
	if (ti_get_local(ti, &local) == 0 && local) {
		begin = (uint64_t)(uintptr_t)local;
		(void)ti_set_local(ti, NULL);
		if (is_wanted(s, jni, now) && now > begin) {
			adapt_locks(now);
			on_wait(s, ti, jni, thread, object, now - begin);
		}
	}
	java_session_leave(s);
}

static void on_parked(jvm jni, jvm_object thread, jvm_object lock, uint64_t ns)
{
	struct java_session *s = java_session_enter();
	uint64_t now = java_session_now_ns();

	if (!s)
		return;
	if (is_wanted(s, jni, now)) {
		adapt_locks(now);
		on_wait(s, agent.ti, jni, thread, lock, ns);
	}
	java_session_leave(s);
}

static int agent_get(jvm vm)
{
	const void *callbacks[TI_EVENT_END - TI_EVENT_FIRST] = {0};
	void *env = NULL;

	if (agent.ti)
		return JAVA_RING_OK;
	if (vm_get_env(vm, &env, JVMTI_VERSION) != 0 || !env)
		return JAVA_RING_ERR_OLD;
	callbacks[TI_EVENT_SAMPLED_OBJECT_ALLOC - TI_EVENT_FIRST] = (const void *)on_alloc;
	callbacks[TI_EVENT_CONTENDED_ENTER - TI_EVENT_FIRST] = (const void *)on_enter;
	callbacks[TI_EVENT_CONTENDED_ENTERED - TI_EVENT_FIRST] = (const void *)on_entered;
	if (ti_set_callbacks(env, callbacks, sizeof(callbacks)) != 0)
		return JAVA_RING_ERR_OLD;
	agent.ti = env;
	return JAVA_RING_OK;
}

static int agent_enable(struct java_session *s, jvm jni)
{
	uint64_t bits[TI_CAPABILITY_WORDS], now = java_session_now_ns();
	uint32_t wanted = java_session_wanted(s);
	int r;

	wanted_capabilities(wanted, bits);
	r = ti_add_capabilities(agent.ti, bits);
	if (r != 0)
		return JAVA_RING_ERR_CAPABILITY + r;
	agent.interval_bytes = java_session_interval(s);
	agent.wait_ns = FIRST_WAIT_NS;
	agent.pending_ns = agent.pending_waits = 0;
	agent.allocs = agent.locks = (struct pace){.begin_ns = now};
	java_session_tell(s, agent.interval_bytes);
	if (wanted & JAVA_RING_ALLOCS) {
		r = ti_set_sampling_interval(agent.ti, (int32_t)agent.interval_bytes);
		if (r == 0)
			r = ti_set_event(agent.ti, 1, TI_EVENT_SAMPLED_OBJECT_ALLOC);
	}
	if (r == 0 && wanted & JAVA_RING_LOCKS) {
		r = ti_set_event(agent.ti, 1, TI_EVENT_CONTENDED_ENTER);
		if (r == 0)
			r = ti_set_event(agent.ti, 1, TI_EVENT_CONTENDED_ENTERED);
		if (r == 0)
			java_session_tell_parks(s, java_park_start(agent.ti, jni, on_parked));
	}
	return r == 0 ? JAVA_RING_OK : JAVA_RING_ERR_EVENTS + r;
}

/* Writes the rest of the sum, without a stack, as it belongs to many. */
static void write_pending(struct java_session *s)
{
	struct java_session_event e = {.kind = JAVA_RING_LOCK};
	uint32_t none = 0;

	e.a = __atomic_exchange_n(&agent.pending_ns, 0, __ATOMIC_RELAXED);
	e.b = __atomic_exchange_n(&agent.pending_waits, 0, __ATOMIC_RELAXED);
	e.frames = &none;
	if (e.a)
		java_session_write(s, &e);
}

static void agent_stop(jvm jni)
{
	struct java_session *s = java_session_enter();

	if (!s)
		return;
	agent_disable(jni);
	write_pending(s);
	(void)java_session_end(s);
	java_session_leave(s);
}

static int agent_start(jvm vm, jvm jni, const char *path)
{
	struct java_session *s;
	int r = agent_get(vm);

	if (r != JAVA_RING_OK)
		return r;
	/* End the session of a killed sonde. */
	agent_stop(jni);
	r = java_session_open(path);
	if (r != JAVA_RING_OK)
		return r;
	s = java_session_enter();
	if (!s)
		return JAVA_RING_ERR_BUSY;
	r = agent_enable(s, jni);
	java_session_leave(s);
	if (r != JAVA_RING_OK)
		agent_stop(jni);
	return r;
}

__attribute__((visibility("default"))) int32_t Agent_OnAttach(jvm vm, char *options,
							      void *reserved);

/* "start,FILE" or "stop". The JVM serializes the calls. */
int32_t Agent_OnAttach(jvm vm, char *options, void *reserved)
{
	void *jni = NULL;

	(void)reserved;
	if (vm_get_env(vm, &jni, JNI_VERSION) != 0 || !jni)
		return JAVA_RING_ERR_OLD;
	if (options && strncmp(options, "start,", 6) == 0)
		return agent_start(vm, jni, options + 6);
	if (!options || strcmp(options, "stop") != 0)
		return JAVA_RING_ERR_COMMAND;
	agent_stop(jni);
	return JAVA_RING_OK;
}
