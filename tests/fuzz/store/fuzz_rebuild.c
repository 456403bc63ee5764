/*
 * tests/fuzz/store/fuzz_rebuild.c: any pages as those from which a lost one is made: some of the
 * file, the others of its log. What is made must be a page of a table.
 */
#include <assert.h>
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "store/sqlite/rebuild.h"

#define HEAD 4
#define PIECE 512 /* of a page, the rest of which is zero: more pages in short inputs */
#define END 64	  /* of these, at the end of the page, where its cells are */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct input {
	const uint8_t *data;
	uint32_t n_pages;
	uint32_t n_frames;
	uint32_t lost; /* one page of the file, and how many were told */
	size_t n_told;
};

static int read_piece(void *ctx, uint32_t number, unsigned int version, uint8_t *page)
{
	const struct input *in = ctx;
	uint32_t i = number - 1;

	assert(number > 0 && number <= in->n_pages);
	if (version == 0 && number == in->lost)
		return 0;
	/* The frames belong to the first pages. */
	if (version == 1 && i < in->n_frames)
		i += in->n_pages;
	else if (version > 0)
		return -ENOENT;
	memset(page, 0, STORE_SEAL_PAGE);
	memcpy(page, in->data + (size_t)i * PIECE, PIECE - END);
	memcpy(page + STORE_SEAL_PAGE - STORE_SEAL_BYTES - END,
	       in->data + (size_t)i * PIECE + PIECE - END, END);
	return 1;
}

static void on_lost(void *ctx, uint32_t number)
{
	struct input *in = ctx;

	assert(number > 0 && number <= in->n_pages);
	in->n_told++;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = {.data = data + HEAD};
	struct store_rebuild r = {.ctx = &in, .read = read_piece, .lost = on_lost};
	uint8_t page[STORE_SEAL_PAGE], fresh[STORE_SEAL_PAGE];

	if (size < HEAD + PIECE)
		return 0;
	in.n_pages = (uint32_t)((size - HEAD) / PIECE);
	in.n_frames = data[0] % in.n_pages;
	in.n_pages -= in.n_frames;
	in.n_frames = MIN(in.n_frames, in.n_pages);
	in.lost = 1 + data[1] % in.n_pages;
	r.n_pages = in.n_pages;
	if (store_rebuild_interior(&r, in.lost, page))
		assert(page[0] == 0x05 || page[0] == 0x0d);
	memset(fresh, data[2], sizeof(fresh));
	fresh[103] = 0;
	fresh[104] = data[3];
	in.lost = 1;
	(void)store_rebuild_first(&r, fresh, page);
	return 0;
}
