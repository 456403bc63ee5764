/* src/java/recorder/settings.c: see settings.h. */
#include "java/recorder/settings.h"

#include <stdio.h>

#include "base/cleanup.h"
#include "base/clock.h"

/* Allocation samples, JDK 16 and later. */
#define ALLOCS_PER_SEC "150/s"
#define SETTING(name, value) "    <setting name=\"" name "\">" value "</setting>\n"

/* How much each thread has allocated: TLAB events may miss some, and samples begin too late. */
static int settings_totals(uint64_t period_ns, struct buf *text)
{
	char period[32] = "everyChunk";

	if (period_ns)
		(void)snprintf(period, sizeof(period), "%llu ms",
			       (unsigned long long)MAX(period_ns / NS_PER_MS, UINT64_C(1000)));
	return buf_printf(text,
			  "  <event name=\"jdk.ThreadAllocationStatistics\">\n" SETTING(
				  "enabled", "true") SETTING("period", "%s") "  </event>\n",
			  period);
}

static int settings_alloc(unsigned int major, uint64_t totals_ns, struct buf *text)
{
	static const char *const tlab[] = {"jdk.ObjectAllocationInNewTLAB",
					   "jdk.ObjectAllocationOutsideTLAB"};
	int r = 0;

	if (major >= JAVA_RECORDING_WEIGHTS_MAJOR)
		r = buf_append_str(text,
				   "  <event name=\"jdk.ObjectAllocationSample\">\n" SETTING(
					   "enabled", "true") SETTING("throttle", ALLOCS_PER_SEC)
					   SETTING("stackTrace", "true") "  </event>\n");
	for (size_t i = 0; r == 0 && major < JAVA_RECORDING_WEIGHTS_MAJOR && i < 2; i++)
		r = buf_printf(text,
			       "  <event name=\"%s\">\n" SETTING("enabled", "true")
				       SETTING("stackTrace", "true") "  </event>\n",
			       tlab[i]);
	if (r == 0 && major == 8)
		r = settings_totals(0, text);
	else if (r == 0 && major >= JAVA_RECORDING_WEIGHTS_MAJOR)
		r = settings_totals(totals_ns, text);
	return r;
}

/* Shorter waits are not recorded. */
static int settings_lock(const char *event, unsigned int threshold_ms, struct buf *text)
{
	return buf_printf(text,
			  "  <event name=\"%s\">\n" SETTING("enabled", "true")
				  SETTING("threshold", "%u ms")
					  SETTING("stackTrace", "true") "  </event>\n",
			  event, threshold_ms);
}

int java_recording_settings(unsigned int major, const struct java_recording_options *o,
			    struct buf *text)
{
	int r;

	r = buf_append_str(text, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
				 "<configuration version=\"2.0\" label=\"sonde\">\n");
	if (r == 0)
		r = settings_alloc(major, o->totals_ns, text);
	if (r == 0)
		r = settings_lock("jdk.JavaMonitorEnter", 1, text);
	if (r == 0)
		r = settings_lock("jdk.ThreadPark", o->park_ms ? o->park_ms : 1, text);
	/* Tells which threads are younger than the recording: their first sample counts. */
	if (r == 0)
		r = buf_append_str(text,
				   "  <event name=\"jdk.ThreadStart\">\n" SETTING("enabled", "true")
					   SETTING("stackTrace", "false") "  </event>\n");
	if (r == 0 && o->cpu_time && major >= 25)
		r = buf_append_str(text, "  <event name=\"jdk.CPUTimeSample\">\n" SETTING(
						 "enabled", "true") SETTING("throttle", "10ms")
						 SETTING("stackTrace", "true") "  </event>\n");
	return r < 0 ? r : buf_append_str(text, "</configuration>\n");
}
