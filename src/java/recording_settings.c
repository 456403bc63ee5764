/* src/java/recording_settings.c: see recording_settings.h. */
#include "java/recording_settings.h"

#include <inttypes.h>

#include "base/clock.h"

#define SETTING(name, value) "    <setting name=\"" name "\">" value "</setting>\n"

static int settings_alloc(unsigned int major, uint32_t per_sec, struct buf *text)
{
	static const char *const tlab[] = {"jdk.ObjectAllocationInNewTLAB",
					   "jdk.ObjectAllocationOutsideTLAB"};
	int r = 0;

	if (major >= 16)
		return buf_printf(text,
				  "  <event name=\"jdk.ObjectAllocationSample\">\n" SETTING(
					  "enabled", "true") SETTING("throttle", "%" PRIu32 "/s")
					  SETTING("stackTrace", "true") "  </event>\n",
				  per_sec);
	for (size_t i = 0; r == 0 && i < 2; i++)
		r = buf_printf(text,
			       "  <event name=\"%s\">\n" SETTING("enabled", "true")
				       SETTING("stackTrace", "true") "  </event>\n",
			       tlab[i]);
	/* Which may not be all of them: its threads count what they allocate. */
	if (r == 0 && major == 8)
		r = buf_append_str(text,
				   "  <event name=\"jdk.ThreadAllocationStatistics\">\n" SETTING(
					   "enabled", "true")
					   SETTING("period", "everyChunk") "  </event>\n");
	return r;
}

static int settings_lock(const char *event, uint64_t threshold_ns, struct buf *text)
{
	return buf_printf(text,
			  "  <event name=\"%s\">\n" SETTING("enabled", "true")
				  SETTING("threshold", "%" PRIu64 " us")
					  SETTING("stackTrace", "true") "  </event>\n",
			  event, threshold_ns / 1000);
}

int java_recording_settings(unsigned int major, const struct java_recording_options *o,
			    struct buf *text)
{
	uint64_t threshold_ns = o->lock_threshold_ns ? o->lock_threshold_ns : NS_PER_MS;
	int r;

	r = buf_append_str(text, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
				 "<configuration version=\"2.0\" label=\"sonde\">\n");
	if (r == 0)
		r = settings_alloc(major, o->allocs_per_sec ? o->allocs_per_sec : 150, text);
	if (r == 0)
		r = settings_lock("jdk.JavaMonitorEnter", threshold_ns, text);
	if (r == 0)
		r = settings_lock("jdk.ThreadPark", threshold_ns, text);
	/* Which threads are younger than the recording: the first sample of those counts. */
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
