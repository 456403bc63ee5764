/* src/java/recorder/settings.c: see settings.h. */
#include "java/recorder/settings.h"

/* Allocation samples, JDK 16 and later. */
#define ALLOCS_PER_SEC "150/s"
/* Shorter waits are not recorded. */
#define LOCK_THRESHOLD "1 ms"
#define SETTING(name, value) "    <setting name=\"" name "\">" value "</setting>\n"

static int settings_alloc(unsigned int major, struct buf *text)
{
	static const char *const tlab[] = {"jdk.ObjectAllocationInNewTLAB",
					   "jdk.ObjectAllocationOutsideTLAB"};
	int r = 0;

	if (major >= 16)
		return buf_append_str(text,
				      "  <event name=\"jdk.ObjectAllocationSample\">\n" SETTING(
					      "enabled", "true") SETTING("throttle", ALLOCS_PER_SEC)
					      SETTING("stackTrace", "true") "  </event>\n");
	for (size_t i = 0; r == 0 && i < 2; i++)
		r = buf_printf(text,
			       "  <event name=\"%s\">\n" SETTING("enabled", "true")
				       SETTING("stackTrace", "true") "  </event>\n",
			       tlab[i]);
	/* These may miss some, so record how much each thread allocates. */
	if (r == 0 && major == 8)
		r = buf_append_str(text,
				   "  <event name=\"jdk.ThreadAllocationStatistics\">\n" SETTING(
					   "enabled", "true")
					   SETTING("period", "everyChunk") "  </event>\n");
	return r;
}

static int settings_lock(const char *event, struct buf *text)
{
	return buf_printf(text,
			  "  <event name=\"%s\">\n" SETTING("enabled", "true")
				  SETTING("threshold", LOCK_THRESHOLD)
					  SETTING("stackTrace", "true") "  </event>\n",
			  event);
}

int java_recording_settings(unsigned int major, const struct java_recording_options *o,
			    struct buf *text)
{
	int r;

	r = buf_append_str(text, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
				 "<configuration version=\"2.0\" label=\"sonde\">\n");
	if (r == 0)
		r = settings_alloc(major, text);
	if (r == 0)
		r = settings_lock("jdk.JavaMonitorEnter", text);
	if (r == 0)
		r = settings_lock("jdk.ThreadPark", text);
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
