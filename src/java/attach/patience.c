/* src/java/attach/patience.c: see patience.h. */
#include "java/attach/patience.h"

#include <errno.h>
#include <stdbool.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "java/attach/attach.h"

static _Thread_local struct {
	unsigned int (*interrupts)(void); /* NULL: there are none */
	unsigned int seen;		  /* when the current wait began */
	uint64_t until_ns;		  /* after an interrupt; 0: there was none */
	bool was_cut;			  /* a wait */
} patience;

void java_attach_set_interrupt(unsigned int (*interrupts)(void))
{
	patience.interrupts = interrupts;
	patience.seen = 0;
	patience.until_ns = 0;
	patience.was_cut = false;
}

static void patience_limit(uint64_t until_ns)
{
	patience.until_ns = patience.until_ns ? MIN(patience.until_ns, until_ns) : until_ns;
}

uint64_t java_patience_begin(uint64_t timeout_ns)
{
	uint64_t now = clock_mono_ns();

	if (patience.interrupts)
		patience.seen = patience.interrupts();
	if (patience.seen && !patience.until_ns)
		patience_limit(now + JAVA_ATTACH_LAST_NS);
	return patience.until_ns ? MIN(now + timeout_ns, patience.until_ns) : now + timeout_ns;
}

int java_patience_check(uint64_t deadline_ns)
{
	uint64_t now = clock_mono_ns();

	if (patience.interrupts && patience.interrupts() != patience.seen) {
		patience.seen = patience.interrupts();
		patience_limit(patience.was_cut ? now : now + JAVA_ATTACH_GRACE_NS);
		patience.was_cut = true;
		return -EINTR;
	}
	return now >= deadline_ns ? -ETIMEDOUT : 0;
}

uint64_t java_patience_step(uint64_t deadline_ns)
{
	uint64_t now = clock_mono_ns(), left = deadline_ns > now ? deadline_ns - now : 0;

	return patience.interrupts ? MIN(left, JAVA_PATIENCE_STEP_NS) : left;
}
