/*
 * src/java/agent_lib/park.c: see park.h.
 *
 * The JVM does not tell which function a native method is bound to. But its class Unsafe can be
 * asked to bind all its methods once more, and while it does, RegisterNatives() of the JVM's table
 * of functions is one of ours that only looks.
 *
 * A JVM prints a warning if anyone but its own classes binds a native method of these. So a class
 * of ours, defined as one of the JVM's, calls the native method that does it.
 */
#include "java/agent_lib/park.h"

#include <stddef.h>
#include <string.h>

#include "java/agent_lib/session.h"

#define HELPER "sonde/Park"

/*
 * final class sonde.Park {
 *     static void bind() { bind0(); }
 *     static native void bind0();
 * }
 */
/* clang-format off */
static const char helper_class[] =
	"\xca\xfe\xba\xbe\0\0\0\x34"		/* JDK 8's format */
	"\0\x0b"				/* 10 constants: */
	"\x07\0\x02"				/* 1: class 2 */
	"\x01\0\x0a" HELPER			/* 2 */
	"\x07\0\x04"				/* 3: class 4 */
	"\x01\0\x10" "java/lang/Object"		/* 4 */
	"\x01\0\x04" "bind"			/* 5 */
	"\x01\0\x03" "()V"			/* 6 */
	"\x01\0\x05" "bind0"			/* 7 */
	"\x01\0\x04" "Code"			/* 8 */
	"\x0a\0\x01\0\x0a"			/* 9: method 10 of class 1 */
	"\x0c\0\x07\0\x06"			/* 10: bind0 ()V */
	"\0\x30\0\x01\0\x03"			/* final class 1 extends 3 */
	"\0\0\0\0\0\x02"			/* no interfaces, no fields, 2 methods: */
	"\0\x08\0\x05\0\x06\0\x01"		/* static bind ()V */
	"\0\x08\0\0\0\x10\0\0\0\0"		/* its code: no stack, no locals */
	"\0\0\0\x04\xb8\0\x09\xb1"		/* invokestatic 9, return */
	"\0\0\0\0"				/* no handlers, no attributes */
	"\x01\x08\0\x07\0\x06\0\0"		/* static native bind0 ()V */
	"\0\0";					/* no attributes */
/* clang-format on */

typedef void (*park_function)(jvm jni, jvm_object unsafe, uint8_t is_absolute, int64_t time);
typedef int32_t (*register_function)(jvm jni, jvm_object class, const struct jvm_native *natives,
				     int32_t n);

/* The JVM cannot unload the library, so its state is static. Set once, but for waited. */
static struct {
	jvm ti;
	jvm_object unsafe, helper; /* classes */
	jvm_object locks[2];	   /* whatever is a lock is one of these */
	jvm_method bind;
	jvm_field blocker; /* Thread.parkBlocker */
	register_function register_natives;
	const void *next; /* to bind */
	park_function jvm_park;
	java_park_waited waited; /* NULL: off */
} park;

/* Some of these are no locks: a latch, for instance. */
static bool is_lock(const char *signature)
{
	static const char *const locks[] = {"Ljava/util/concurrent/locks/Reentrant",
					    "Ljava/util/concurrent/locks/StampedLock",
					    "Ljava/util/concurrent/Semaphore"};

	for (size_t i = 0; i < sizeof(locks) / sizeof(locks[0]); i++)
		if (strncmp(signature, locks[i], strlen(locks[i])) == 0)
			return true;
	return false;
}

/*
 * Other blockers are queues, conditions and futures: there a thread waits for work, and many do so
 * all the time. So that must not cost more than a look at the class.
 */
static bool blocker_is_lock(jvm jni, jvm_object blocker)
{
	char *signature = NULL;
	jvm_object class;
	bool yes;

	if (!jni_is_instance_of(jni, blocker, park.locks[0]) &&
	    !jni_is_instance_of(jni, blocker, park.locks[1]))
		return false;
	class = jni_get_object_class(jni, blocker);
	yes = class && ti_get_class_signature(park.ti, class, &signature) == 0 && signature &&
	      is_lock(signature);
	ti_deallocate(park.ti, signature);
	if (class)
		jni_delete_local_ref(jni, class);
	return yes;
}

static void park_tell(jvm jni, java_park_waited waited, uint64_t ns)
{
	jvm_object thread = NULL, blocker;

	if (ti_get_current_thread(park.ti, &thread) != 0 || !thread)
		return;
	blocker = jni_get_object_field(jni, thread, park.blocker);
	if (blocker && blocker_is_lock(jni, blocker))
		waited(jni, thread, blocker, ns);
	if (blocker)
		jni_delete_local_ref(jni, blocker);
	jni_delete_local_ref(jni, thread);
}

/* In place of the JVM's. */
static void on_park(jvm jni, jvm_object unsafe, uint8_t is_absolute, int64_t time)
{
	uint64_t begin = java_session_now_ns(), end;
	java_park_waited waited;

	park.jvm_park(jni, unsafe, is_absolute, time);
	waited = __atomic_load_n(&park.waited, __ATOMIC_ACQUIRE);
	end = java_session_now_ns();
	if (waited && end > begin)
		park_tell(jni, waited, end - begin);
}

/* In place of the JVM's, for a moment: other threads may use it, too. */
static int32_t on_register(jvm jni, jvm_object class, const struct jvm_native *natives, int32_t n)
{
	if (!jni_is_same_object(jni, class, park.unsafe))
		return park.register_natives(jni, class, natives, n);
	for (int32_t i = 0; i < n; i++)
		if (strcmp(natives[i].name, "park") == 0 &&
		    strcmp(natives[i].signature, "(ZJ)V") == 0)
			park.jvm_park = (park_function)(uintptr_t)natives[i].function;
	return 0;
}

/* Called by our class. */
static void on_bind0(jvm jni, jvm_object class)
{
	const struct jvm_native native = {"park", "(ZJ)V", park.next};

	(void)class;
	(void)jni_register_natives(jni, park.unsafe, &native, 1);
}

static void park_bind(jvm jni, const void *function)
{
	park.next = function;
	jni_call_static_void(jni, park.helper, park.bind);
	jni_exception_clear(jni);
}

/* A reference that stays valid, for one that may be NULL. */
static jvm_object keep_ref(jvm jni, jvm_object local)
{
	jvm_object kept = local ? jni_new_global_ref(jni, local) : NULL;

	if (local)
		jni_delete_local_ref(jni, local);
	return kept;
}

static bool find_jvm_park(jvm ti, jvm jni)
{
	jvm_method again = jni_get_static_method_id(jni, park.unsafe, "registerNatives");
	const void **table = NULL;

	if (!again || ti_get_jni_table(ti, &table) != 0)
		return false;
	park.register_natives = (register_function)(uintptr_t)table[JNI_REGISTER_NATIVES];
	table[JNI_REGISTER_NATIVES] = (const void *)on_register;
	if (ti_set_jni_table(ti, table) == 0) {
		jni_call_static_void(jni, park.unsafe, again);
		table[JNI_REGISTER_NATIVES] = (const void *)park.register_natives;
		(void)ti_set_jni_table(ti, table);
	}
	ti_deallocate(ti, table);
	return park.jvm_park != NULL;
}

/* Another version of this library may have defined it. */
static bool make_helper(jvm jni)
{
	const struct jvm_native native = {"bind0", "()V", (const void *)on_bind0};
	jvm_object class =
		jni_define_class(jni, HELPER, helper_class, (int32_t)sizeof(helper_class) - 1);

	jni_exception_clear(jni);
	park.helper = keep_ref(jni, class ? class : jni_find_class(jni, HELPER));
	if (!park.helper || jni_register_natives(jni, park.helper, &native, 1) != 0)
		return false;
	park.bind = jni_get_static_method_id(jni, park.helper, "bind");
	return park.bind != NULL;
}

static bool park_find(jvm ti, jvm jni)
{
	static const char *const names[] = {"java/util/concurrent/locks/AbstractQueuedSynchronizer",
					    "java/util/concurrent/locks/StampedLock"};
	jvm_object thread;

	if (park.bind)
		return true;
	park.ti = ti;
	park.unsafe = keep_ref(jni, jni_find_class(jni, "jdk/internal/misc/Unsafe"));
	thread = park.unsafe ? jni_find_class(jni, "java/lang/Thread") : NULL;
	for (size_t i = 0; thread && i < 2; i++)
		park.locks[i] = keep_ref(jni, jni_find_class(jni, names[i]));
	if (!thread || !park.locks[0] || !park.locks[1])
		return false;
	park.blocker = jni_get_field_id(jni, thread, "parkBlocker", "Ljava/lang/Object;");
	jni_delete_local_ref(jni, thread);
	return park.blocker && find_jvm_park(ti, jni) && make_helper(jni);
}

bool java_park_start(jvm ti, jvm jni, java_park_waited waited)
{
	bool found = park_find(ti, jni);

	jni_exception_clear(jni);
	if (!found)
		return false;
	__atomic_store_n(&park.waited, waited, __ATOMIC_RELEASE);
	park_bind(jni, (const void *)on_park);
	return true;
}

void java_park_stop(jvm jni)
{
	if (!__atomic_exchange_n(&park.waited, NULL, __ATOMIC_ACQ_REL))
		return;
	park_bind(jni, (const void *)park.jvm_park);
}
