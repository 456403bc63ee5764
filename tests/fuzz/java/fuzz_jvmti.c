/*
 * tests/fuzz/java/fuzz_jvmti.c: any bytes as what a library in a JVM writes: the header of its
 * file, then records; read twice, for the first reading moves on. If the position's highest bit is
 * set, each record says that it is complete, where it would have to know its place.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "java/jvmti/builder.h"
#include "java/jvmti/load.h"
#include "java/jvmti/ring.h"

#define DATA_BYTES ((uint64_t)64 << 10)
#define COMPLETE ((uint64_t)1 << 31)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void complete(uint8_t *records, size_t size)
{
	uint32_t len;

	for (size_t at = 0; size - at >= sizeof(struct java_ring_record_header); at += len) {
		const uint64_t commit = at + 1;

		memcpy(records + at, &commit, sizeof(commit));
		memcpy(&len, records + at + offsetof(struct java_ring_record_header, len),
		       sizeof(len));
		if (len == 0 || len > size - at)
			break;
	}
}

/* Into its place: the position of the agent first, then records. */
static void forge(const struct java_ring *ring, const uint8_t *data, size_t size)
{
	static uint8_t records[DATA_BYTES];
	uint64_t head = 0;

	memcpy(&head, data, size < 4 ? size : 4);
	if (size > 4 && head & COMPLETE) {
		memcpy(records, data + 4, size - 4);
		complete(records, size - 4);
		head &= DATA_BYTES - 1;
		data = records;
	} else {
		data += MIN(size, (size_t)4);
	}
	if (pwrite(ring->fd, &head, sizeof(head), offsetof(struct java_ring_header, head)) < 0)
		__builtin_trap();
	if (size > 4 && pwrite(ring->fd, data, size - 4, JAVA_RING_HEADER_BYTES) < 0)
		__builtin_trap();
}

static int look(struct java_ring *ring, struct java_jvmti_builder *builder)
{
	struct java_ring_record record;
	uint64_t n = 0;

	if (java_ring_read(ring, NULL) < 0)
		return -1;
	while (java_ring_next(ring, &record) > 0) {
		if (++n > DATA_BYTES / JAVA_RING_ALIGN)
			__builtin_trap();
		(void)java_jvmti_builder_add(builder, &record);
	}
	return java_ring_done(ring, NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct java_ring_options o = {.data_bytes = DATA_BYTES, .depth = 64, .interval_bytes = 1};
	struct java_jfr_builder_options profile = {.label_threads = true, .label_classes = true};
	struct java_jvmti_builder builder;
	struct java_ring_counts counts;
	struct java_ring ring;
	int code, fd = memfd_create("ring", MFD_CLOEXEC);

	(void)java_jvmti_parse_answer(view_of(data, size), &code);
	if (size > DATA_BYTES)
		return 0;
	if (fd < 0 || java_ring_create_take(&ring, fd, &o, NULL) < 0 ||
	    java_jvmti_builder_init(&builder, &profile) < 0)
		__builtin_trap();
	forge(&ring, data, size);
	if (look(&ring, &builder) == 0)
		(void)look(&ring, &builder);
	(void)java_ring_counts(&ring, &counts);
	for (int kind = JAVA_JFR_PROFILE_ALLOC; kind <= JAVA_JFR_PROFILE_LOCK; kind++) {
		struct profile *p = NULL;

		if (java_jvmti_builder_take(&builder, kind, &p, NULL) < 0)
			__builtin_trap();
		profile_free(p);
	}
	java_jvmti_builder_release(&builder);
	java_ring_release(&ring);
	return 0;
}
