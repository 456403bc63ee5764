/*
 * src/elf/unwind/entries.c: finds functions in the table that a program's own unwinder searches.
 *
 *   .eh_frame_hdr:  version u8 | encodings of the three below u8[3] | address of .eh_frame s32 |
 *                   n u32 | n times (start s32, entry s32), ascending, both relative to the header
 *
 * Linkers write no other encodings.
 */
#include <elf.h>
#include <errno.h>

#include "elf/symbols.h"
#include "elf/unwind/eh_frame.h"

#define EH_HEADER_BYTES 12
#define EH_ROW_BYTES 8
/* Rows read at once. */
#define EH_ROWS 512
#define EH_PCREL_SDATA4 0x1b
#define EH_UDATA4 0x03
#define EH_DATAREL_SDATA4 0x3b

static const struct elf_segment *entry_table(const struct elf_image *image)
{
	for (size_t i = 0; i < image->n_segments; i++)
		if (image->segments[i].type == PT_GNU_EH_FRAME)
			return &image->segments[i];
	return NULL;
}

/* The number of rows, 0 if the table is not readable. */
static uint64_t entry_count(const struct elf_image *image, const struct elf_segment *table)
{
	uint8_t header[EH_HEADER_BYTES];
	uint32_t n = 0;

	if (table->filesz < sizeof(header) ||
	    elf_image_read(image, table->offset, header, sizeof(header)) < 0)
		return 0;
	if (header[0] != 1 || header[1] != EH_PCREL_SDATA4 || header[2] != EH_UDATA4 ||
	    header[3] != EH_DATAREL_SDATA4)
		return 0;
	(void)view_u32(view_of(header, sizeof(header)), 8, &n);
	return MIN(n, (table->filesz - sizeof(header)) / EH_ROW_BYTES);
}

static int entry_read(const struct elf_image *image, const struct elf_segment *table, uint64_t at,
		      int32_t (*rows)[2], size_t n)
{
	return elf_image_read(image, table->offset + EH_HEADER_BYTES + at * EH_ROW_BYTES, rows,
			      n * EH_ROW_BYTES);
}

/*
 * The number of rows at or before the address, and the start of the last of these; or -errno. The
 * last steps of the search cost no more reads.
 */
static int entry_search(const struct elf_image *image, const struct elf_segment *table, uint64_t n,
			uint64_t vaddr, uint64_t *ret_n, uint64_t *ret_start)
{
	uint64_t low = 0, high = n, first = 0;
	int32_t rows[EH_ROWS][2];
	size_t held = 0;

	*ret_start = 0;
	while (low < high) {
		uint64_t mid = low + (high - low) / 2, start;

		if (!held || mid - first >= held) {
			held = high - low <= EH_ROWS ? (size_t)(high - low) : 1;
			first = held > 1 ? low : mid;
			if (entry_read(image, table, first, rows, held) < 0)
				return -ENOENT;
		}
		start = table->vaddr + (uint64_t)(int64_t)rows[mid - first][0];
		if (start <= vaddr) {
			*ret_start = start;
			low = mid + 1;
		} else {
			high = mid;
		}
	}
	*ret_n = low;
	return 0;
}

int elf_eh_entries(const struct elf_image *image, uint64_t from, uint64_t to,
		   int (*take)(void *context, uint64_t start, uint64_t entry), void *context)
{
	const struct elf_segment *table = entry_table(image);
	uint64_t n = table ? entry_count(image, table) : 0, at, start, end;
	int32_t rows[EH_ROWS][2];

	if (!n || entry_search(image, table, n, from, &at, &start) < 0)
		return -ENOENT;
	/* The function before it may extend into it. */
	at -= at > 0;
	end = at + MIN(n - at, (uint64_t)ELF_EH_MAX_FDES);
	while (at < end) {
		size_t batch = (size_t)MIN(end - at, (uint64_t)EH_ROWS);

		if (entry_read(image, table, at, rows, batch) < 0)
			return -ENOENT;
		for (size_t i = 0; i < batch; i++, at++) {
			int r;

			start = table->vaddr + (uint64_t)(int64_t)rows[i][0];
			if (start >= to)
				return 0;
			r = take(context, start, table->vaddr + (uint64_t)(int64_t)rows[i][1]);
			if (r < 0)
				return r;
		}
	}
	return end < n ? -E2BIG : 0;
}

int elf_entry_start(const struct elf_image *image, uint64_t vaddr, uint64_t *ret_start)
{
	const struct elf_segment *table = entry_table(image);
	uint64_t found = 0, n;

	if (table && entry_search(image, table, entry_count(image, table), vaddr, &n, &found) < 0)
		return -ENOENT;
	/* Linkers leave rows with address 0 for code they dropped. */
	if (found == 0)
		return -ENOENT;
	*ret_start = found;
	return 0;
}
