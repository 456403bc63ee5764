/*
 * tests/unit/java/test_jvmti.h: a JVM of a few functions, for the agent's own code.
 *
 * Methods are strings "class method"; threads are one, called "main". What the agent asks for is
 * noted in fake.
 */
#pragma once

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "java/agent_lib/jvm.h"

struct fake_class {
	char signature[64];
};

struct fake_method {
	struct fake_class *class;
	const char *name;
	int32_t line;
};

static struct {
	bool events[TI_EVENT_END];
	uint64_t capabilities;
	int32_t interval;
	int32_t refuse_capabilities; /* the error for them, or 0 */
	const void *callbacks[TI_EVENT_END - TI_EVENT_FIRST];
	struct jvm_frame stack[300];
	int32_t depth;
	void *local;
	long allocated; /* that the agent has not given back */
	long refs;
	/* Unsafe.park() and what its thread waits for; the native method of the agent's class. */
	void (*park)(jvm, jvm_object, uint8_t, int64_t);
	void (*bind)(jvm, jvm_object);
	jvm_object blocker;
	int64_t parked;
	bool has_no_unsafe;
} fake;

static struct fake_class fake_unsafe = {"Ljdk/internal/misc/Unsafe;"},
			 fake_thread = {"Ljava/lang/Thread;"}, fake_helper = {"Lsonde/Park;"};

static char *fake_string(const char *text)
{
	fake.allocated++;
	return strdup(text);
}

static int32_t fake_set_event(jvm ti, int32_t mode, int32_t event, jvm_object thread, ...)
{
	(void)ti;
	(void)thread;
	fake.events[event] = mode == 1;
	return 0;
}

static int32_t fake_thread_info(jvm ti, jvm_object thread, struct jvm_thread_info *ret)
{
	(void)ti;
	(void)thread;
	fake.refs += 2;
	*ret = (struct jvm_thread_info){
		.name = fake_string("main"), .group = &fake, .class_loader = &fake};
	return 0;
}

static int32_t fake_deallocate(jvm ti, void *memory)
{
	(void)ti;
	fake.allocated--;
	free(memory);
	return 0;
}

static int32_t fake_class_signature(jvm ti, jvm_object class, char **ret, char **generic)
{
	(void)ti;
	(void)generic;
	*ret = fake_string(((struct fake_class *)class)->signature);
	return 0;
}

static int32_t fake_method_name(jvm ti, jvm_method method, char **ret, char **sig, char **generic)
{
	(void)ti;
	(void)sig;
	(void)generic;
	*ret = fake_string(((struct fake_method *)method)->name);
	return 0;
}

static int32_t fake_method_class(jvm ti, jvm_method method, jvm_object *ret)
{
	(void)ti;
	fake.refs++;
	*ret = ((struct fake_method *)method)->class;
	return 0;
}

static int32_t fake_lines(jvm ti, jvm_method method, int32_t *ret_len, struct jvm_line **ret)
{
	int32_t line = ((struct fake_method *)method)->line;
	struct jvm_line *lines = calloc(2, sizeof(*lines));

	(void)ti;
	fake.allocated++;
	lines[0] = (struct jvm_line){.start = 0, .line = line};
	lines[1] = (struct jvm_line){.start = 10, .line = line + 1};
	*ret_len = 2;
	*ret = lines;
	return 0;
}

static int32_t fake_get_local(jvm ti, jvm_object thread, void **ret)
{
	(void)ti;
	(void)thread;
	*ret = fake.local;
	return 0;
}

static int32_t fake_set_local(jvm ti, jvm_object thread, void *value)
{
	(void)ti;
	(void)thread;
	fake.local = value;
	return 0;
}

static int32_t fake_stack(jvm ti, jvm_object thread, int32_t from, int32_t max,
			  struct jvm_frame *frames, int32_t *ret_len)
{
	(void)ti;
	(void)thread;
	(void)from;
	*ret_len = fake.depth < max ? fake.depth : max;
	memcpy(frames, fake.stack, (size_t)*ret_len * sizeof(*frames));
	return 0;
}

static int32_t fake_callbacks(jvm ti, const void *const *callbacks, int32_t bytes)
{
	(void)ti;
	memcpy(fake.callbacks, callbacks, (size_t)bytes);
	return 0;
}

static int32_t fake_add(jvm ti, const uint64_t *bits)
{
	(void)ti;
	if (fake.refuse_capabilities)
		return fake.refuse_capabilities;
	fake.capabilities |= bits[0];
	return 0;
}

static int32_t fake_relinquish(jvm ti, const uint64_t *bits)
{
	(void)ti;
	fake.capabilities &= ~bits[0];
	return 0;
}

static int32_t fake_interval(jvm ti, int32_t bytes)
{
	(void)ti;
	fake.interval = bytes;
	return 0;
}

static void fake_delete_ref(jvm jni, jvm_object object)
{
	(void)jni;
	(void)object;
	fake.refs--;
}

/* An object is its class. */
static jvm_object fake_object_class(jvm jni, jvm_object object)
{
	(void)jni;
	fake.refs++;
	return object;
}

static struct fake_class fake_locks = {"Ljava/util/concurrent/locks/"};

static jvm_object fake_find_class(jvm jni, const char *name)
{
	jvm_object found = NULL;

	(void)jni;
	if (strncmp(name, "java/util/concurrent/locks/", 27) == 0)
		found = &fake_locks;
	else if (strcmp(name, "java/lang/Thread") == 0)
		found = &fake_thread;
	else if (strcmp(name, "jdk/internal/misc/Unsafe") == 0 && !fake.has_no_unsafe)
		found = &fake_unsafe;
	fake.refs += found != NULL;
	return found;
}

static jvm_object fake_define_class(jvm jni, const char *name, jvm_object loader, const void *bytes,
				    int32_t len)
{
	(void)jni;
	if (loader || strcmp(name, "sonde/Park") != 0 || len < 4 ||
	    memcmp(bytes, "\xca\xfe\xba\xbe", 4) != 0)
		return NULL;
	fake.refs++;
	return &fake_helper;
}

static jvm_object fake_global_ref(jvm jni, jvm_object object)
{
	(void)jni;
	return object;
}

static void fake_exception_clear(jvm jni)
{
	(void)jni;
}

static uint8_t fake_is_instance_of(jvm jni, jvm_object object, jvm_object class)
{
	const struct fake_class *prefix = class, *of = object;

	(void)jni;
	return strncmp(of->signature, prefix->signature, strlen(prefix->signature)) == 0;
}

static uint8_t fake_is_same(jvm jni, jvm_object a, jvm_object b)
{
	(void)jni;
	return a == b;
}

static jvm_field fake_field_id(jvm jni, jvm_object class, const char *name, const char *signature)
{
	(void)jni;
	(void)signature;
	return class == &fake_thread && strcmp(name, "parkBlocker") == 0 ? &fake.blocker : NULL;
}

static jvm_object fake_object_field(jvm jni, jvm_object object, jvm_field field)
{
	(void)jni;
	(void)object;
	fake.refs += fake.blocker != NULL;
	return *(jvm_object *)field;
}

static jvm_method fake_static_method_id(jvm jni, jvm_object class, const char *name,
					const char *signature)
{
	(void)jni;
	(void)class;
	(void)signature;
	return strcmp(name, "bind") == 0 ? (jvm_method)&fake_helper : (jvm_method)&fake_unsafe;
}

static void fake_jvm_park(jvm jni, jvm_object unsafe, uint8_t is_absolute, int64_t time)
{
	(void)jni;
	(void)unsafe;
	(void)is_absolute;
	fake.parked += time;
	/* Longer than what is never an event of its own. */
	(void)usleep(200);
}

static void fake_call_static_void(jvm jni, jvm_object class, jvm_method method, ...)
{
	static const struct jvm_native natives[] = {
		{"unpark", "(Ljava/lang/Object;)V", (const void *)fake_exception_clear},
		{"park", "(ZJ)V", (const void *)fake_jvm_park},
	};

	if (method == &fake_helper)
		fake.bind(jni, class);
	else
		(void)jni_register_natives(jni, class, natives, 2);
}

static int32_t fake_register_natives(jvm jni, jvm_object class, const struct jvm_native *natives,
				     int32_t n)
{
	(void)jni;
	for (int32_t i = 0; i < n; i++) {
		if (class == &fake_unsafe && strcmp(natives[i].name, "park") == 0)
			fake.park =
				(void (*)(jvm, jvm_object, uint8_t, int64_t))(uintptr_t)natives[i]
					.function;
		else if (class == &fake_helper)
			fake.bind = (void (*)(jvm, jvm_object))(uintptr_t)natives[i].function;
	}
	return 0;
}

static int32_t fake_current_thread(jvm ti, jvm_object *ret)
{
	(void)ti;
	fake.refs++;
	*ret = &fake;
	return 0;
}

static int32_t fake_get_jni_table(jvm ti, const void ***ret);
static int32_t fake_set_jni_table(jvm ti, const void **table);

/* By number, as the interfaces have them. */
static const void *fake_ti_table[TI_SET_HEAP_SAMPLING_INTERVAL] = {
	[TI_SET_EVENT_NOTIFICATION_MODE - 1] = (const void *)fake_set_event,
	[TI_GET_THREAD_INFO - 1] = (const void *)fake_thread_info,
	[TI_GET_CURRENT_THREAD - 1] = (const void *)fake_current_thread,
	[TI_GET_JNI_FUNCTION_TABLE - 1] = (const void *)fake_get_jni_table,
	[TI_SET_JNI_FUNCTION_TABLE - 1] = (const void *)fake_set_jni_table,
	[TI_DEALLOCATE - 1] = (const void *)fake_deallocate,
	[TI_GET_CLASS_SIGNATURE - 1] = (const void *)fake_class_signature,
	[TI_GET_METHOD_NAME - 1] = (const void *)fake_method_name,
	[TI_GET_METHOD_DECLARING_CLASS - 1] = (const void *)fake_method_class,
	[TI_GET_LINE_NUMBER_TABLE - 1] = (const void *)fake_lines,
	[TI_GET_THREAD_LOCAL_STORAGE - 1] = (const void *)fake_get_local,
	[TI_SET_THREAD_LOCAL_STORAGE - 1] = (const void *)fake_set_local,
	[TI_GET_STACK_TRACE - 1] = (const void *)fake_stack,
	[TI_SET_EVENT_CALLBACKS - 1] = (const void *)fake_callbacks,
	[TI_ADD_CAPABILITIES - 1] = (const void *)fake_add,
	[TI_RELINQUISH_CAPABILITIES - 1] = (const void *)fake_relinquish,
	[TI_SET_HEAP_SAMPLING_INTERVAL - 1] = (const void *)fake_interval,
};

static const void *fake_jni_table[JNI_REGISTER_NATIVES + 1] = {
	[JNI_DEFINE_CLASS] = (const void *)fake_define_class,
	[JNI_FIND_CLASS] = (const void *)fake_find_class,
	[JNI_EXCEPTION_CLEAR] = (const void *)fake_exception_clear,
	[JNI_NEW_GLOBAL_REF] = (const void *)fake_global_ref,
	[JNI_DELETE_LOCAL_REF] = (const void *)fake_delete_ref,
	[JNI_IS_SAME_OBJECT] = (const void *)fake_is_same,
	[JNI_GET_OBJECT_CLASS] = (const void *)fake_object_class,
	[JNI_IS_INSTANCE_OF] = (const void *)fake_is_instance_of,
	[JNI_GET_FIELD_ID] = (const void *)fake_field_id,
	[JNI_GET_OBJECT_FIELD] = (const void *)fake_object_field,
	[JNI_GET_STATIC_METHOD_ID] = (const void *)fake_static_method_id,
	[JNI_CALL_STATIC_VOID_METHOD] = (const void *)fake_call_static_void,
	[JNI_REGISTER_NATIVES] = (const void *)fake_register_natives,
};

static int32_t fake_get_jni_table(jvm ti, const void ***ret)
{
	(void)ti;
	fake.allocated++;
	*ret = malloc(sizeof(fake_jni_table));
	memcpy(*ret, fake_jni_table, sizeof(fake_jni_table));
	return 0;
}

static int32_t fake_set_jni_table(jvm ti, const void **table)
{
	(void)ti;
	memcpy(fake_jni_table, table, sizeof(fake_jni_table));
	return 0;
}

static jvm_table fake_ti = fake_ti_table, fake_jni = fake_jni_table;

static int32_t fake_get_env(jvm vm, void **ret, int32_t version)
{
	(void)vm;
	if (version != JVMTI_VERSION && version != JNI_VERSION)
		return -3;
	*ret = version == JNI_VERSION ? &fake_jni : &fake_ti;
	return 0;
}

static const void *fake_vm_table[8] = {[VM_GET_ENV] = (const void *)fake_get_env};
static jvm_table fake_vm = fake_vm_table;

static void fake_alloc(struct fake_class *class, int64_t size)
{
	void (*callback)(jvm, jvm, jvm_object, jvm_object, jvm_object, int64_t) =
		(void (*)(jvm, jvm, jvm_object, jvm_object, jvm_object, int64_t))(
			uintptr_t)fake.callbacks[TI_EVENT_SAMPLED_OBJECT_ALLOC - TI_EVENT_FIRST];

	if (fake.events[TI_EVENT_SAMPLED_OBJECT_ALLOC])
		callback(&fake_ti, &fake_jni, &fake, class, class, size);
}

/* A thread waits for an object of that class, or for nobody knows what. */
static void fake_wait_parked(struct fake_class *class, int64_t time)
{
	fake.blocker = class;
	fake.park(&fake_jni, &fake_unsafe, 0, time);
	fake.blocker = NULL;
}

static void fake_monitor(int event, struct fake_class *class)
{
	void (*callback)(jvm, jvm, jvm_object, jvm_object) = (void (*)(
		jvm, jvm, jvm_object, jvm_object))(uintptr_t)fake.callbacks[event - TI_EVENT_FIRST];

	if (fake.events[event])
		callback(&fake_ti, &fake_jni, &fake, class);
}
