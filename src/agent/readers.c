/* src/agent/readers.c: the table of readers (see reader.h). */
#include <stddef.h>

#include "agent/go_program.h"
#include "agent/java.h"
#include "agent/reader.h"

const struct reader_ops *const readers[] = {
	&reader_go_heap,       &reader_go_runtime,
	&reader_go_goroutines, &reader_go_block,
	&reader_go_mutex,      &reader_java_runtime,
	&reader_java_alloc,    &reader_java_lock,
	&reader_java_cpu,      NULL,
};

void reader_share_clear(struct reader_share *share)
{
	go_program_unref(share->go);
	java_program_unref(share->java);
	*share = (struct reader_share){0};
}

void reading_release(struct reading *reading)
{
	profile_free(reading->profile);
	metrics_free(reading->metrics);
	reading->profile = NULL;
	reading->metrics = NULL;
}
