/* src/store/sqlite/age.c: see age.h. */
#include "store/sqlite/age.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"

#define AGE_CONFIRM_NS ((int64_t)24 * 3600 * (int64_t)NS_PER_SEC)
/* Between two looks the clocks may differ by this: slewing, and the time that looking takes. */
#define AGE_SLACK_NS ((int64_t)5 * (int64_t)NS_PER_SEC)
/* Another jump, which has to be confirmed anew; and one that people should know of. */
#define AGE_JUMP_NS ((int64_t)3600 * (int64_t)NS_PER_SEC)

int64_t store_age_look(struct store_age *age, int64_t wall_ns, int64_t ran_ns)
{
	int64_t passed = age->ran_ns < 0 ? 0 : MAX(ran_ns - age->ran_ns, 0);
	int64_t ahead;

	age->ran_ns = ran_ns;
	if (age->trusted_ns == 0)
		age->trusted_ns = wall_ns;
	else
		age->trusted_ns += passed;
	ahead = wall_ns - age->trusted_ns;
	if (ahead <= AGE_SLACK_NS) {
		age->trusted_ns = wall_ns;
		age->ahead_ns = age->stood_ns = 0;
		return age->trusted_ns;
	}
	/* What it is ahead by now is confirmed only as far as it has been all the time. */
	if (age->ahead_ns == 0 || ahead - age->ahead_ns > AGE_JUMP_NS) {
		age->ahead_ns = ahead;
		age->stood_ns = 0;
	} else {
		age->ahead_ns = MIN(age->ahead_ns, ahead);
		age->stood_ns += passed;
	}
	if (age->stood_ns >= AGE_CONFIRM_NS) {
		age->trusted_ns = wall_ns;
		age->ahead_ns = age->stood_ns = 0;
	}
	return age->trusted_ns;
}

bool store_age_is_ahead(const struct store_age *age)
{
	return age->ahead_ns > AGE_JUMP_NS;
}

void store_age_print(const struct store_age *age, char text[STORE_AGE_TEXT_MAX])
{
	(void)snprintf(text, STORE_AGE_TEXT_MAX,
		       "sonde-clock 1 %" PRId64 " %" PRId64 " %" PRId64 "\n", age->trusted_ns,
		       age->ahead_ns, age->stood_ns);
}

/* A number and what ends it. */
static bool age_take(const char **at, char end, int64_t *ret)
{
	char *after;

	errno = 0;
	*ret = strtoll(*at, &after, 10);
	if (errno || after == *at || *after != end)
		return false;
	*at = after + 1;
	return true;
}

void store_age_parse(struct store_age *age, const char *text)
{
	static const char head[] = "sonde-clock 1 ";
	struct store_age found = {.ran_ns = -1};

	if (strncmp(text, head, sizeof(head) - 1) != 0)
		return;
	text += sizeof(head) - 1;
	if (!age_take(&text, ' ', &found.trusted_ns) || !age_take(&text, ' ', &found.ahead_ns) ||
	    !age_take(&text, '\n', &found.stood_ns))
		return;
	if (found.trusted_ns <= 0 || found.ahead_ns < 0 || found.stood_ns < 0 ||
	    found.stood_ns > AGE_CONFIRM_NS)
		return;
	*age = found;
}
