/*
 * tests/fuzz/store/fuzz_age.c: any text as the file that says how far the clock is trusted, after
 * readings of both clocks; what is written of it is read as the same.
 */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "store/sqlite/age.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_again(const struct store_age *age)
{
	struct store_age again = {.ran_ns = -1};
	char text[STORE_AGE_TEXT_MAX];

	store_age_print(age, text);
	store_age_parse(&again, text);
	assert(again.trusted_ns == age->trusted_ns && again.ahead_ns == age->ahead_ns &&
	       again.stood_ns == age->stood_ns);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct store_age age = {.ran_ns = -1};
	int64_t clocks[2] = {0}; /* since 1970, and of our own */
	_cleanup_free_ char *text = NULL;
	size_t n = MIN(size, sizeof(clocks));

	if (n)
		memcpy(clocks, data, n);
	text = strndup((const char *)data + n, size - n);
	if (!text)
		return 0;
	store_age_parse(&age, text);
	if (age.trusted_ns)
		check_again(&age);
	/* Clocks that the kernel can have. */
	for (int64_t i = 0; i < 3; i++)
		(void)store_age_look(&age, clocks[0] & INT64_MAX >> 1,
				     (clocks[1] & INT64_MAX >> 8) + i);
	(void)store_age_is_ahead(&age);
	if (age.trusted_ns)
		check_again(&age);
	return 0;
}
