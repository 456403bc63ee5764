/*
 * tests/fuzz/java/fuzz_hsperf.c: any bytes as the counters of a JVM, and the metrics made of them.
 */
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "java/hsperf.h"
#include "java/metrics.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int look(void *arg, const struct metric_point *p)
{
	size_t *n = arg;

	if (++*n > 256 || !(p->value >= 0))
		__builtin_trap();
	for (size_t i = 0; i < METRIC_MAX_ATTRIBUTES; i++)
		if (p->attributes[i] &&
		    (!p->metric->attributes[i] || strlen(p->attributes[i]) > 63))
			__builtin_trap();
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_(java_hsperf_closep) struct java_hsperf *h = NULL;
	int fd = memfd_create("hsperf", MFD_CLOEXEC);
	size_t at = 0, entries = 0, series = 0;
	struct java_metrics m;
	struct java_counter c;
	char text[32];

	if (fd < 0 || write(fd, data, size) != (ssize_t)size ||
	    java_hsperf_open_take(fd, &h, NULL) < 0)
		__builtin_trap();
	if (java_hsperf_read(h, NULL) < 0)
		return 0;
	while (java_hsperf_next(h, &at, &c) > 0)
		if (++entries > JAVA_HSPERF_MAX_ENTRIES)
			__builtin_trap();
	(void)java_hsperf_text(h, "sun.rt.jvmCapabilities", text, sizeof(text));
	if (java_metrics_read(h, &m, NULL) == 0)
		(void)java_metrics_each(&m, 0, look, &series);
	return 0;
}
