/* tests/support/unwind_table.c: see unwind_table.h. */
#include "unwind_table.h"

#include "base/cleanup.h"
#include "elf/unwind/builder.h"

int elf_unwind_compile(const struct elf_image *image, struct elf_unwind_table *ret_table,
		       struct err *err)
{
	_cleanup_(elf_unwind_builder_release) struct elf_unwind_builder b = {0};
	int r = elf_unwind_build(image, NULL, &b, err);

	if (r < 0)
		return r;
	elf_unwind_builder_finish(&b, ret_table);
	return 0;
}

struct elf_unwind_rule unwind_table_lookup(const struct elf_unwind_table *table, uint64_t vaddr)
{
	size_t lo = 0, hi = table->n_rows;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (table->rows[mid].vaddr <= vaddr)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo ? table->rows[lo - 1].rule : (struct elf_unwind_rule){.cfa = ELF_UNWIND_NONE};
}

uint64_t unwind_table_start(const struct elf_unwind_table *table, uint64_t vaddr)
{
	size_t lo = 0, hi = table->n_starts;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (table->starts[mid] <= vaddr)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo ? table->starts[lo - 1] : 0;
}
