/*
 * tests/fuzz/java/fuzz_hsperf.c: any bytes as the counters of a JVM, the metrics made of them, and
 * what they say of its version and arguments.
 */
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "java/detect.h"
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

/* A file of the JDK says it as well. */
static void look_at_release(const uint8_t *data, size_t size)
{
	_cleanup_free_ char *text = strndup((const char *)data, size);
	char version[16];

	if (text && java_parse_release(text, version, sizeof(version)) &&
	    (!version[0] || strlen(version) >= sizeof(version)))
		__builtin_trap();
}

static void look_at_texts(const struct java_hsperf *h, const uint8_t *data, size_t size)
{
	unsigned int major = 8, update;
	char text[32] = "";

	(void)java_hsperf_text(h, "java.property.java.version", text, sizeof(text));
	java_parse_version(text, &major, &update);
	if (major > 99999 || update > 99999)
		__builtin_trap();
	(void)java_hsperf_text(h, "sun.gc.collector.0.name", text, sizeof(text));
	(void)java_hides_allocs(8, text, view_of(data, size));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_(java_hsperf_closep) struct java_hsperf *h = NULL;
	int fd = memfd_create("hsperf", MFD_CLOEXEC);
	size_t at = 0, entries = 0, series = 0;
	struct java_metrics m;
	struct java_counter c;

	look_at_release(data, size);
	if (fd < 0 || write(fd, data, size) != (ssize_t)size ||
	    java_hsperf_open_take(fd, &h, NULL) < 0)
		__builtin_trap();
	if (java_hsperf_read(h, NULL) < 0)
		return 0;
	while (java_hsperf_next(h, &at, &c) > 0)
		if (++entries > JAVA_HSPERF_MAX_ENTRIES)
			__builtin_trap();
	look_at_texts(h, data, size);
	if (java_metrics_read(h, &m, NULL) == 0)
		(void)java_metrics_each(&m, 0, look, &series);
	return 0;
}
