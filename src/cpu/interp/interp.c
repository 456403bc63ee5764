/* src/cpu/interp/interp.c: see interp.h. */
#include "cpu/interp/interp.h"

#include <errno.h>
#include <string.h>

#include "base/cleanup.h"

#define DECLARE(constant, name) extern const struct interp_ops interp_##name;
INTERP_KINDS(DECLARE)
#undef DECLARE

const struct interp_ops *interp_ops(enum interp_kind kind)
{
#define ROW(constant, name) [INTERP_##constant] = &interp_##name,
	static const struct interp_ops *const rows[INTERP_N] = {INTERP_KINDS(ROW)};
#undef ROW

	return rows[kind];
}

bool interp_is_supported(const char *runtime, const char *version)
{
	for (enum interp_kind kind = INTERP_NONE + 1; kind < INTERP_N; kind++)
		if (strcmp(interp_ops(kind)->runtime, runtime) == 0)
			return interp_ops(kind)->is_supported(version);
	return false;
}

static int layouts_add(struct interp_layouts *l, const struct interp_layout *layout,
		       uint32_t *ret_row)
{
	uint32_t row = 0;

	while (row < l->len && memcmp(&l->rows[row], layout, sizeof(*layout)) != 0)
		row++;
	if (row == INTERP_LAYOUTS)
		return -ENOSPC;
	if (row == l->len)
		l->rows[l->len++] = *layout;
	*ret_row = row;
	return 0;
}

static void interp_make(struct interp_layouts *layouts, enum interp_kind kind,
			const struct interp_found *found, struct interp *ret)
{
	uint32_t row;

	*ret = (struct interp){.kind = INTERP_NONE};
	if (layouts_add(layouts, &found->layout, &row) < 0)
		return;
	*ret = (struct interp){.kind = kind, .row = row, .layout = &layouts->rows[row]};
	memcpy(ret->addresses, found->addresses, sizeof(ret->addresses));
}

void interp_detect(struct interp_layouts *layouts, const struct elf_image *image, const char *path,
		   struct interp *ret_interp)
{
	*ret_interp = (struct interp){.kind = INTERP_NONE};
	for (enum interp_kind kind = INTERP_NONE + 1; kind < INTERP_N; kind++) {
		struct interp_found found = {0};

		if (!interp_ops(kind)->is_named(path) ||
		    !interp_ops(kind)->detect(image, path, &found))
			continue;
		interp_make(layouts, kind, &found, ret_interp);
		return;
	}
}

void interp_locate(struct interp_layouts *layouts, const struct interp *file, uint64_t bias,
		   pid_t pid, struct interp *ret_interp)
{
	const struct interp_ops *ops = interp_ops(file->kind);
	_cleanup_(proc_mem_closep) struct proc_mem *mem = NULL;
	struct interp_found found = {.layout = *file->layout};

	for (size_t i = 0; i < INTERP_ADDRESSES; i++)
		found.addresses[i] = file->addresses[i] ? file->addresses[i] + bias : 0;
	*ret_interp = (struct interp){.kind = INTERP_NONE};
	if (!ops->locate || (proc_mem_open_bare(pid, &mem, NULL) == 0 && ops->locate(mem, &found)))
		interp_make(layouts, file->kind, &found, ret_interp);
}
