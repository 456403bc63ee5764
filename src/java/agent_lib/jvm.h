/*
 * src/java/agent_lib/jvm.h: the few functions of JNI and JVMTI that the agent calls, by their index
 * in the JVM's tables.
 *
 * Both interfaces are tables of function pointers in an order fixed by their specifications, so no
 * JDK files are needed to build this. JVMTI numbers its functions from 1.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

typedef const void *const *jvm_table;
typedef jvm_table *jvm; /* JavaVM, JNIEnv and jvmtiEnv start with a pointer to their table */
typedef void *jvm_object;
typedef void *jvm_method;
typedef void *jvm_field;

struct jvm_frame {
	jvm_method method;
	int64_t location; /* -1 in native methods */
};

struct jvm_line {
	int64_t start; /* of the location */
	int32_t line;
};

struct jvm_thread_info {
	char *name;
	int32_t priority;
	uint8_t is_daemon;
	jvm_object group;
	jvm_object class_loader;
};

/* A native method and the function behind it. */
struct jvm_native {
	const char *name;
	const char *signature;
	const void *function;
};

#define JVMTI_VERSION 0x300B0000 /* JDK 11's */
#define JNI_VERSION 0x00010008

enum {
	VM_GET_ENV = 6,
	JNI_DEFINE_CLASS = 5,
	JNI_FIND_CLASS = 6,
	JNI_EXCEPTION_CLEAR = 17,
	JNI_NEW_GLOBAL_REF = 21,
	JNI_DELETE_LOCAL_REF = 23,
	JNI_IS_SAME_OBJECT = 24,
	JNI_GET_OBJECT_CLASS = 31,
	JNI_IS_INSTANCE_OF = 32,
	JNI_GET_FIELD_ID = 94,
	JNI_GET_OBJECT_FIELD = 95,
	JNI_GET_STATIC_METHOD_ID = 113,
	JNI_CALL_STATIC_VOID_METHOD = 141,
	JNI_REGISTER_NATIVES = 215,
};

enum {
	TI_SET_EVENT_NOTIFICATION_MODE = 2,
	TI_GET_THREAD_INFO = 9,
	TI_GET_CURRENT_THREAD = 18,
	TI_DEALLOCATE = 47,
	TI_GET_CLASS_SIGNATURE = 48,
	TI_GET_METHOD_NAME = 64,
	TI_GET_METHOD_DECLARING_CLASS = 65,
	TI_GET_LINE_NUMBER_TABLE = 70,
	TI_GET_THREAD_LOCAL_STORAGE = 102,
	TI_SET_THREAD_LOCAL_STORAGE = 103,
	TI_GET_STACK_TRACE = 104,
	TI_SET_JNI_FUNCTION_TABLE = 120,
	TI_GET_JNI_FUNCTION_TABLE = 121,
	TI_SET_EVENT_CALLBACKS = 122,
	TI_ADD_CAPABILITIES = 142,
	TI_RELINQUISH_CAPABILITIES = 143,
	TI_SET_HEAP_SAMPLING_INTERVAL = 156,
};

/* Events are numbered from 50, in the order of their callbacks. */
enum {
	TI_EVENT_FIRST = 50,
	TI_EVENT_CONTENDED_ENTER = 75,
	TI_EVENT_CONTENDED_ENTERED = 76,
	TI_EVENT_SAMPLED_OBJECT_ALLOC = 86,
	TI_EVENT_END = 87,
};

/* Bits of the capability set. */
enum {
	TI_CAN_GET_LINE_NUMBERS = 12,
	TI_CAN_GENERATE_MONITOR_EVENTS = 28,
	TI_CAN_GENERATE_SAMPLED_OBJECT_ALLOC_EVENTS = 43,
	TI_CAPABILITY_WORDS = 2, /* of 64 bits */
};

#define JVM_CALL(env, at, type, ...) (((type)(uintptr_t)(*(env))[(at)])((env), ##__VA_ARGS__))

static inline int32_t vm_get_env(jvm vm, void **ret_env, int32_t version)
{
	return JVM_CALL(vm, VM_GET_ENV, int32_t(*)(jvm, void **, int32_t), ret_env, version);
}

static inline void jni_delete_local_ref(jvm jni, jvm_object object)
{
	JVM_CALL(jni, JNI_DELETE_LOCAL_REF, void (*)(jvm, jvm_object), object);
}

static inline jvm_object jni_get_object_class(jvm jni, jvm_object object)
{
	return JVM_CALL(jni, JNI_GET_OBJECT_CLASS, jvm_object(*)(jvm, jvm_object), object);
}

static inline jvm_object jni_define_class(jvm jni, const char *name, const void *bytes, int32_t len)
{
	/* Without a loader: one of the JVM's own classes. */
	return JVM_CALL(jni, JNI_DEFINE_CLASS,
			jvm_object(*)(jvm, const char *, jvm_object, const void *, int32_t), name,
			NULL, bytes, len);
}

static inline jvm_object jni_find_class(jvm jni, const char *name)
{
	return JVM_CALL(jni, JNI_FIND_CLASS, jvm_object(*)(jvm, const char *), name);
}

static inline void jni_exception_clear(jvm jni)
{
	JVM_CALL(jni, JNI_EXCEPTION_CLEAR, void (*)(jvm));
}

static inline jvm_object jni_new_global_ref(jvm jni, jvm_object object)
{
	return JVM_CALL(jni, JNI_NEW_GLOBAL_REF, jvm_object(*)(jvm, jvm_object), object);
}

static inline uint8_t jni_is_same_object(jvm jni, jvm_object a, jvm_object b)
{
	return JVM_CALL(jni, JNI_IS_SAME_OBJECT, uint8_t(*)(jvm, jvm_object, jvm_object), a, b);
}

static inline uint8_t jni_is_instance_of(jvm jni, jvm_object object, jvm_object class)
{
	return JVM_CALL(jni, JNI_IS_INSTANCE_OF, uint8_t(*)(jvm, jvm_object, jvm_object), object,
			class);
}

static inline jvm_field jni_get_field_id(jvm jni, jvm_object class, const char *name,
					 const char *signature)
{
	return JVM_CALL(jni, JNI_GET_FIELD_ID,
			jvm_field(*)(jvm, jvm_object, const char *, const char *), class, name,
			signature);
}

static inline jvm_object jni_get_object_field(jvm jni, jvm_object object, jvm_field field)
{
	return JVM_CALL(jni, JNI_GET_OBJECT_FIELD, jvm_object(*)(jvm, jvm_object, jvm_field),
			object, field);
}

static inline jvm_method jni_get_static_method_id(jvm jni, jvm_object class, const char *name)
{
	return JVM_CALL(jni, JNI_GET_STATIC_METHOD_ID,
			jvm_method(*)(jvm, jvm_object, const char *, const char *), class, name,
			"()V");
}

static inline void jni_call_static_void(jvm jni, jvm_object class, jvm_method method)
{
	JVM_CALL(jni, JNI_CALL_STATIC_VOID_METHOD, void (*)(jvm, jvm_object, jvm_method, ...),
		 class, method);
}

static inline int32_t jni_register_natives(jvm jni, jvm_object class,
					   const struct jvm_native *natives, int32_t n)
{
	return JVM_CALL(jni, JNI_REGISTER_NATIVES,
			int32_t(*)(jvm, jvm_object, const struct jvm_native *, int32_t), class,
			natives, n);
}

/* The others return 0 or an error number. */
#define TI_CALL(env, number, types, ...) JVM_CALL(env, (number)-1, int32_t(*) types, ##__VA_ARGS__)

static inline int32_t ti_set_event(jvm ti, int enable, int32_t event)
{
	/* The thread is the last argument, passed through "...". */
	return TI_CALL(ti, TI_SET_EVENT_NOTIFICATION_MODE, (jvm, int32_t, int32_t, jvm_object, ...),
		       enable, event, NULL);
}

static inline int32_t ti_get_thread_info(jvm ti, jvm_object thread, struct jvm_thread_info *ret)
{
	return TI_CALL(ti, TI_GET_THREAD_INFO, (jvm, jvm_object, struct jvm_thread_info *), thread,
		       ret);
}

static inline int32_t ti_get_current_thread(jvm ti, jvm_object *ret)
{
	return TI_CALL(ti, TI_GET_CURRENT_THREAD, (jvm, jvm_object *), ret);
}

/* A copy to be deallocated; setting it copies it, too. */
static inline int32_t ti_get_jni_table(jvm ti, const void ***ret)
{
	return TI_CALL(ti, TI_GET_JNI_FUNCTION_TABLE, (jvm, const void ***), ret);
}

static inline int32_t ti_set_jni_table(jvm ti, const void **table)
{
	return TI_CALL(ti, TI_SET_JNI_FUNCTION_TABLE, (jvm, const void **), table);
}

static inline void ti_deallocate(jvm ti, void *memory)
{
	if (memory)
		(void)TI_CALL(ti, TI_DEALLOCATE, (jvm, void *), memory);
}

static inline int32_t ti_get_class_signature(jvm ti, jvm_object class, char **ret)
{
	return TI_CALL(ti, TI_GET_CLASS_SIGNATURE, (jvm, jvm_object, char **, char **), class, ret,
		       NULL);
}

static inline int32_t ti_get_method_name(jvm ti, jvm_method method, char **ret)
{
	return TI_CALL(ti, TI_GET_METHOD_NAME, (jvm, jvm_method, char **, char **, char **), method,
		       ret, NULL, NULL);
}

static inline int32_t ti_get_method_class(jvm ti, jvm_method method, jvm_object *ret)
{
	return TI_CALL(ti, TI_GET_METHOD_DECLARING_CLASS, (jvm, jvm_method, jvm_object *), method,
		       ret);
}

static inline int32_t ti_get_lines(jvm ti, jvm_method method, int32_t *ret_len,
				   struct jvm_line **ret)
{
	return TI_CALL(ti, TI_GET_LINE_NUMBER_TABLE,
		       (jvm, jvm_method, int32_t *, struct jvm_line **), method, ret_len, ret);
}

static inline int32_t ti_get_local(jvm ti, void **ret)
{
	return TI_CALL(ti, TI_GET_THREAD_LOCAL_STORAGE, (jvm, jvm_object, void **), NULL, ret);
}

static inline int32_t ti_set_local(jvm ti, const void *value)
{
	return TI_CALL(ti, TI_SET_THREAD_LOCAL_STORAGE, (jvm, jvm_object, const void *), NULL,
		       value);
}

static inline int32_t ti_get_stack(jvm ti, jvm_object thread, int32_t max, struct jvm_frame *frames,
				   int32_t *ret_len)
{
	return TI_CALL(ti, TI_GET_STACK_TRACE,
		       (jvm, jvm_object, int32_t, int32_t, struct jvm_frame *, int32_t *), thread,
		       0, max, frames, ret_len);
}

static inline int32_t ti_set_callbacks(jvm ti, const void *const *callbacks, int32_t bytes)
{
	return TI_CALL(ti, TI_SET_EVENT_CALLBACKS, (jvm, const void *const *, int32_t), callbacks,
		       bytes);
}

static inline int32_t ti_add_capabilities(jvm ti, const uint64_t *bits)
{
	return TI_CALL(ti, TI_ADD_CAPABILITIES, (jvm, const uint64_t *), bits);
}

static inline int32_t ti_relinquish_capabilities(jvm ti, const uint64_t *bits)
{
	return TI_CALL(ti, TI_RELINQUISH_CAPABILITIES, (jvm, const uint64_t *), bits);
}

static inline int32_t ti_set_sampling_interval(jvm ti, int32_t bytes)
{
	return TI_CALL(ti, TI_SET_HEAP_SAMPLING_INTERVAL, (jvm, int32_t), bytes);
}
