/* src/cpu/interp/python/python.c: the CPython interpreter. */
#include "cpu/interp/python/python.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cpu/interp/interp.h"
#include "cpu/interp/python/code.h"
#include "cpu/interp/python/layout.h"
#include "cpu/interp/python/symbols.h"
#include "proc/text.h"

_Static_assert(sizeof(struct python_layout) <= sizeof(struct interp_layout), "layouts fit");
_Static_assert(PYTHON_TEXT_MAX <= INTERP_TEXT_MAX, "names fit");

static bool python_detect(const struct elf_image *image, const char *path, struct interp_found *ret)
{
	struct python_symbols symbols;

	python_symbols_read(image, path, &symbols);
	if (!symbols.minor)
		return false;
	memcpy(&ret->layout, python_layout(symbols.minor), sizeof(struct python_layout));
	ret->addresses[PYTHON_RUNTIME] = symbols.runtime;
	ret->addresses[PYTHON_CODE_TYPE] = symbols.code_type;
	return true;
}

/*
 * Compilers split the loop into parts ("NAME.cold"). Trampolines (-X perf) have names in a perf map
 * that duplicate the frames.
 */
static enum interp_part python_part(const char *symbol, bool has_file)
{
	static const char loop[] = "_PyEval_EvalFrameDefault", trampoline[] = "py::";

	if (has_file)
		return strncmp(symbol, loop, sizeof(loop) - 1) == 0 ? INTERP_PART_LOOP
								    : INTERP_PART_NONE;
	return strncmp(symbol, trampoline, sizeof(trampoline) - 1) == 0 ? INTERP_PART_GLUE
									: INTERP_PART_NONE;
}

static uint64_t frame_code(const struct interp_frame *frame)
{
	return (frame->id & PYTHON_FRAME_CODE) << PYTHON_FRAME_CODE_SHIFT;
}

static uint32_t frame_instr(const struct interp_frame *frame)
{
	return frame->id >> PYTHON_FRAME_INSTR_SHIFT & PYTHON_FRAME_INSTR_MAX;
}

static int python_name(struct proc_mem *mem, const struct interp *interp,
		       const struct interp_frame *frame, struct interp_name *ret, size_t cap)
{
	uint32_t instr = frame_instr(frame);
	struct python_layout layout;
	struct python_code code;
	int r;

	if (!cap)
		return -E2BIG;
	memcpy(&layout, interp->layout, sizeof(layout));
	r = python_code_read(mem, &layout, interp->addresses[PYTHON_CODE_TYPE], frame_code(frame),
			     instr == PYTHON_FRAME_INSTR_MAX ? PYTHON_NOWHERE : instr, &code, NULL);
	if (r < 0)
		return r;
	/* Another code object has taken its place. */
	if (code.name_hash != frame->check)
		return -EBADMSG;
	memcpy(ret->function, code.name, sizeof(code.name));
	memcpy(ret->file, code.file, sizeof(code.file));
	ret->line = code.line;
	ret->start_line = code.first_line;
	return 1;
}

/* Each instruction takes two bytes, somewhere in the object. */
static uint64_t python_address(const struct interp_frame *frame)
{
	uint32_t instr = frame_instr(frame);

	return frame_code(frame) +
	       2 * (uint64_t)(instr == PYTHON_FRAME_INSTR_MAX ? PYTHON_NOWHERE : instr);
}

static bool python_is_supported(const char *version)
{
	return strncmp(version, "3.", 2) == 0 &&
	       python_layout((unsigned int)strtoul(version + 2, NULL, 10));
}

const struct interp_ops interp_python = {
	.runtime = "python",
	.is_supported = python_is_supported,
	.unnamed = "[python]",
	.more = "[more Python frames]",
	.missing = "[its Python frames were not found among the first 512 threads]",
	.is_named = python_is_named,
	.detect = python_detect,
	.part = python_part,
	.name = python_name,
	.address = python_address,
};
