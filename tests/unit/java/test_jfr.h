/*
 * tests/unit/java/test_jfr.h: writes recordings, right and wrong ones.
 *
 * A chunk is metadata, then events and checkpoints in any order; forge_finish() completes the
 * header.
 */
#pragma once

#include <fcntl.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "java/jfr/chunk.h"

/* id, name, fields "name:type", with * for a pool's key and [] for an array. */
struct forge_type {
	int id;
	const char *name;
	const char *fields;
};

enum {
	T_STRING = 10,
	T_CLASS = 20,
	T_SYMBOL,
	T_METHOD,
	T_FRAME,
	T_STACK,
	T_THREAD,
	T_FRAME_TYPE,
	E_EXECUTION = 101,
	E_ALLOC,
	E_MONITOR,
	E_PARK,
	E_TLAB,
	E_OUTSIDE,
	E_THREAD_START,
	E_CPU_TIME,
	E_SETTING,
	E_COUNT,
	E_ALL,
};

static const struct forge_type forge_types[] = {
	{1, "boolean", ""},
	{2, "byte", ""},
	{3, "char", ""},
	{4, "short", ""},
	{5, "int", ""},
	{6, "long", ""},
	{7, "float", ""},
	{8, "double", ""},
	{T_STRING, "java.lang.String", ""},
	{T_CLASS, "java.lang.Class", "name:21*"},
	{T_SYMBOL, "jdk.types.Symbol", "string:10"},
	{T_METHOD, "jdk.types.Method", "type:20* name:21* hidden:1"},
	{T_FRAME, "jdk.types.StackFrame", "method:22* lineNumber:5 bytecodeIndex:5 type:26*"},
	{T_STACK, "jdk.types.StackTrace", "truncated:1 frames:23[]"},
	{T_THREAD, "java.lang.Thread", "osName:10 osThreadId:6 javaName:10 javaThreadId:6"},
	{T_FRAME_TYPE, "jdk.types.FrameType", "description:10"},
	{E_EXECUTION, "jdk.ExecutionSample", "startTime:6 sampledThread:25* stackTrace:24*"},
	{E_ALLOC, "jdk.ObjectAllocationSample",
	 "startTime:6 eventThread:25* stackTrace:24* objectClass:20* weight:6"},
	{E_MONITOR, "jdk.JavaMonitorEnter",
	 "startTime:6 duration:6 eventThread:25* stackTrace:24* monitorClass:20*"},
	{E_PARK, "jdk.ThreadPark",
	 "startTime:6 duration:6 eventThread:25* stackTrace:24* parkedClass:20*"},
	{E_TLAB, "jdk.ObjectAllocationInNewTLAB",
	 "startTime:6 eventThread:25* stackTrace:24* objectClass:20* allocationSize:6 tlabSize:6"},
	{E_OUTSIDE, "jdk.ObjectAllocationOutsideTLAB",
	 "startTime:6 eventThread:25* stackTrace:24* objectClass:20* allocationSize:6"},
	{E_THREAD_START, "jdk.ThreadStart", "startTime:6 thread:25*"},
	{E_CPU_TIME, "jdk.CPUTimeSample",
	 "startTime:6 stackTrace:24* eventThread:25* failed:1 samplingPeriod:6"},
	{E_SETTING, "jdk.ActiveSetting", "startTime:6 id:6 name:10 value:10"},
	{E_COUNT, "jdk.ThreadAllocationStatistics", "startTime:6 allocated:6 thread:25*"},
	{E_ALL, "test.All",
	 "startTime:6 flag:1 small:2 letter:3 brief:4 whole:5 wide:6 single:7 real:8 text:10 "
	 "numbers:5[] kind:20*"},
};

struct forge {
	struct buf out;
	size_t start;	   /* of the chunk */
	size_t event;	   /* that is being written */
	size_t checkpoint; /* the last one, in the chunk; 0 for none */
	size_t metadata;
};

static inline void f_byte(struct forge *f, uint8_t byte)
{
	(void)buf_append_byte(&f->out, byte);
}

/* As JFR has it: a ninth byte of eight bits. */
static inline void f_num(struct forge *f, uint64_t value)
{
	for (int i = 0; i < 8; i++, value >>= 7) {
		if (value < 0x80) {
			f_byte(f, (uint8_t)value);
			return;
		}
		f_byte(f, (uint8_t)(value | 0x80));
	}
	f_byte(f, (uint8_t)value);
}

static inline void f_nums(struct forge *f, int n, ...)
{
	va_list list;

	va_start(list, n);
	while (n-- > 0)
		f_num(f, (uint64_t)va_arg(list, long));
	va_end(list);
}

static inline void f_big(struct forge *f, uint64_t value, int n)
{
	while (n-- > 0)
		f_byte(f, (uint8_t)(value >> (8 * n)));
}

static inline void f_text(struct forge *f, const char *text)
{
	if (!text) {
		f_byte(f, 0);
		return;
	}
	f_byte(f, 3);
	f_num(f, strlen(text));
	(void)buf_append(&f->out, text, strlen(text));
}

/* Sizes are known at the end: five bytes, padded, as the JVM writes them. */
static inline void f_begin(struct forge *f, uint64_t type)
{
	f->event = f->out.len;
	for (int i = 0; i < 5; i++)
		f_byte(f, 0);
	f_num(f, type);
}

static inline void f_end(struct forge *f)
{
	uint32_t size = (uint32_t)(f->out.len - f->event);

	for (int i = 0; i < 5; i++, size >>= 7)
		f->out.data[f->event + (size_t)i] = (uint8_t)((size & 0x7f) | (i < 4 ? 0x80 : 0));
}

static inline void f_chunk(struct forge *f)
{
	f->start = f->out.len;
	f->checkpoint = f->metadata = 0;
	(void)buf_append(&f->out, "FLR\0\0\2\0\1", 8);
	for (int i = 0; i < 3; i++)
		f_big(f, 0, 8);
	f_big(f, 1000000000000ULL, 8); /* start: 1000 s */
	f_big(f, 5000000000ULL, 8);
	f_big(f, 100, 8);	 /* ticks */
	f_big(f, 2000000000, 8); /* per second */
	f_big(f, 1, 4);		 /* finished, short numbers */
}

static inline void f_put_big(struct forge *f, size_t at, uint64_t value)
{
	for (int i = 0; i < 8; i++)
		f->out.data[f->start + at + (size_t)i] = (uint8_t)(value >> (56 - 8 * i));
}

static inline void f_state(struct forge *f, uint8_t state)
{
	f->out.data[f->start + JAVA_JFR_STATE_OFFSET] = state;
}

static inline void f_finish(struct forge *f)
{
	f_put_big(f, 8, f->out.len - f->start);
	f_put_big(f, 16, f->checkpoint);
	f_put_big(f, 24, f->metadata);
}

struct forge_strings {
	const char *list[256];
	char store[8192];
	size_t used;
	uint64_t n;
};

static inline uint64_t f_string(struct forge_strings *s, const char *text, size_t len)
{
	for (uint64_t i = 0; i < s->n; i++)
		if (strlen(s->list[i]) == len && memcmp(s->list[i], text, len) == 0)
			return i;
	memcpy(s->store + s->used, text, len);
	s->list[s->n] = s->store + s->used;
	s->used += len + 1;
	return s->n++;
}

static inline uint64_t f_word(struct forge_strings *s, const char *text)
{
	return f_string(s, text, strlen(text));
}

static inline void f_field(struct forge *body, struct forge_strings *s, const char *spec,
			   size_t len)
{
	const char *colon = memchr(spec, ':', len);
	size_t digits = strspn(colon + 1, "0123456789");
	bool pooled = colon[1 + digits] == '*', array = colon[1 + digits] == '[';

	f_num(body, f_word(s, "field"));
	f_num(body, 2 + pooled + array);
	f_nums(body, 2, f_word(s, "name"), f_string(s, spec, (size_t)(colon - spec)));
	f_nums(body, 2, f_word(s, "class"), f_string(s, colon + 1, digits));
	if (pooled)
		f_nums(body, 2, f_word(s, "constantPool"), f_word(s, "true"));
	if (array)
		f_nums(body, 2, f_word(s, "dimension"), f_word(s, "1"));
	f_num(body, 0);
}

static inline void f_class(struct forge *body, struct forge_strings *s, const struct forge_type *t)
{
	char id[16];
	uint64_t n = 0;

	(void)snprintf(id, sizeof(id), "%d", t->id);
	for (const char *p = t->fields; *p; p++)
		n += *p == ':';
	f_nums(body, 2, f_word(s, "class"), 3L);
	f_nums(body, 2, f_word(s, "name"), f_word(s, t->name));
	f_nums(body, 2, f_word(s, "id"), f_word(s, id));
	f_nums(body, 2, f_word(s, "superType"), f_word(s, t->id > 100 ? "jdk.jfr.Event" : ""));
	f_num(body, n);
	for (const char *p = t->fields; *p;) {
		size_t len = strcspn(p, " ");

		f_field(body, s, p, len);
		p += len + (p[len] == ' ');
	}
}

static inline void f_metadata_of(struct forge *f, const struct forge_type *types, size_t n)
{
	struct forge_strings s = {0};
	struct forge body = {0};

	f_nums(&body, 3, f_word(&s, "root"), 0L, 1L);
	f_nums(&body, 3, f_word(&s, "metadata"), 0L, (long)n);
	for (size_t i = 0; i < n; i++)
		f_class(&body, &s, &types[i]);
	f->metadata = f->out.len - f->start;
	f_begin(f, 0);
	f_nums(f, 4, 100L, 0L, 1L, (long)s.n);
	for (uint64_t i = 0; i < s.n; i++)
		f_text(f, s.list[i]);
	(void)buf_append(&f->out, body.out.data, body.out.len);
	f_end(f);
	buf_release(&body.out);
}

static inline void f_metadata(struct forge *f)
{
	f_metadata_of(f, forge_types, ARRAY_SIZE(forge_types));
}

/* Pools follow, and f_end(). */
static inline void f_checkpoint(struct forge *f, int n_pools)
{
	size_t at = f->out.len - f->start;

	f_begin(f, 1);
	f_nums(f, 2, 100L, 0L);
	f_num(f, f->checkpoint ? (uint64_t)f->checkpoint - at : 0);
	f_byte(f, 1);
	f_num(f, (uint64_t)n_pools);
	f->checkpoint = at;
}

static inline void f_symbol(struct forge *f, long key, const char *text)
{
	f_num(f, (uint64_t)key);
	f_text(f, text);
}

/*
 * Symbols 1 to 9, classes 1 (app.Main), 2 (byte[]), 3 (ReentrantLock), 4 (SynchronousQueue),
 * methods 1 (app.Main.run) and 2 (app.Main.work), stack 1 (work:7, run:3), thread 1 (worker-7).
 */
static inline void f_constants(struct forge *f)
{
	f_checkpoint(f, 6);
	f_nums(f, 2, (long)T_SYMBOL, 6L);
	f_symbol(f, 1, "app/Main");
	f_symbol(f, 2, "[B");
	f_symbol(f, 3, "java/util/concurrent/locks/ReentrantLock$NonfairSync");
	f_symbol(f, 4, "java/util/concurrent/SynchronousQueue$TransferQueue");
	f_symbol(f, 5, "run");
	f_symbol(f, 6, "work");
	f_nums(f, 10, (long)T_CLASS, 4L, 1L, 1L, 2L, 2L, 3L, 3L, 4L, 4L);
	f_nums(f, 5, (long)T_METHOD, 2L, 1L, 1L, 5L);
	f_byte(f, 0);
	f_nums(f, 3, 2L, 1L, 6L);
	f_byte(f, 0);
	f_nums(f, 3, (long)T_STACK, 1L, 1L);
	f_byte(f, 0);
	f_nums(f, 9, 2L, 2L, 7L, 0L, 1L, 1L, 3L, 0L, 1L);
	f_nums(f, 3, (long)T_THREAD, 1L, 1L);
	f_text(f, "worker-7");
	f_num(f, 4711);
	f_text(f, "worker-7");
	f_num(f, 31);
	f_nums(f, 3, (long)T_FRAME_TYPE, 1L, 1L);
	f_text(f, "JIT compiled");
	f_end(f);
}

static inline void f_alloc(struct forge *f, long start, long thread, long class, long weight)
{
	f_begin(f, E_ALLOC);
	f_nums(f, 5, start, thread, 1L, class, weight);
	f_end(f);
}

static inline void f_wait(struct forge *f, uint64_t event, long duration, long class)
{
	f_begin(f, event);
	f_nums(f, 5, 200L, duration, 1L, 1L, class);
	f_end(f);
}

/* A file of that content, which nobody else sees. */
static inline int f_file(const void *data, size_t len)
{
	int fd = memfd_create("recording", MFD_CLOEXEC);

	if (fd >= 0 && len && write(fd, data, len) != (ssize_t)len) {
		close(fd);
		return -1;
	}
	return fd;
}
