/* tests/fuzz/golang/fuzz_rates.c: any text as the journal of forced rates. */
#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "golang/rates/journal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct golang_rate_note notes[GOLANG_RATE_NOTES_MAX], again[GOLANG_RATE_NOTES_MAX];
	_cleanup_(buf_release) struct buf text = buf_with_max(1 << 20);
	size_t len = golang_rate_notes_parse(view_of(data, size), notes);

	assert(len <= GOLANG_RATE_NOTES_MAX);
	for (size_t i = 0; i < len; i++)
		assert(notes[i].id.pid > 0 && notes[i].kind <= GOLANG_RATE_MUTEX);
	/* What we would write of it is read as the same. */
	assert(golang_rate_notes_print(notes, len, &text) == 0);
	assert(golang_rate_notes_parse(buf_view(&text), again) == len);
	for (size_t i = 0; i < len; i++)
		assert(notes[i].id.pid == again[i].id.pid && notes[i].space == again[i].space &&
		       notes[i].id.start_ticks == again[i].id.start_ticks &&
		       notes[i].old == again[i].old && notes[i].ours == again[i].ours &&
		       notes[i].kind == again[i].kind);
	return 0;
}
