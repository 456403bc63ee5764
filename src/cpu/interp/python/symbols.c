/*
 * src/cpu/interp/python/symbols.c: see symbols.h.
 *
 * The version is in the file's name, which anyone can choose. If the contents tell the version,
 * too, both must agree: since 3.11 by Py_Version, in 3.13 also by the offsets it publishes for
 * debuggers at the start of _PyRuntime.
 */
#include "cpu/interp/python/symbols.h"

#include <elf.h>
#include <string.h>

#include "base/cleanup.h"
#include "cpu/interp/python/layout.h"
#include "elf/symbols.h"

enum {
	RUNTIME,
	CODE_TYPE,
	VERSION,
	N_SYMBOLS,
};

/*
 * The words of 3.13's _Py_DebugOffsets that we check (Include/internal/ pycore_runtime.h); the
 * order is the same in all releases of 3.13.
 */
enum {
	OFFSETS_COOKIE = 0, /* "xdebugpy" */
	OFFSETS_VERSION = 1,
	OFFSETS_FREE_THREADED = 2,
	OFFSETS_INTERPRETERS = 5,
	OFFSETS_INTERPRETER_NEXT = 8,
	OFFSETS_INTERPRETER_THREADS = 9,
	OFFSETS_THREAD_NEXT = 21,
	OFFSETS_THREAD_FRAME = 23,
	OFFSETS_THREAD_ID = 24,
	OFFSETS_FRAME_PREVIOUS = 29,
	OFFSETS_FRAME_CODE = 30,
	OFFSETS_FRAME_INSTR = 31,
	OFFSETS_FRAME_OWNER = 33,
	OFFSETS_CODE_FILENAME = 35,
	OFFSETS_CODE_QUALNAME = 37,
	OFFSETS_CODE_LINES = 38,
	OFFSETS_CODE_FIRSTLINENO = 39,
	OFFSETS_CODE_INSTRS = 43,
	N_OFFSETS,
};

/*
 * The version in "python3.11" or "libpython3.11.so.1.0"; 0 for other names and unsupported
 * versions. Builds with another layout have a suffix.
 */
static unsigned int minor_of_name(const char *path)
{
	const char *slash = strrchr(path, '/');
	const char *name = slash ? slash + 1 : path;
	bool is_library = strncmp(name, "lib", 3) == 0;
	unsigned int minor = 0;

	name += is_library ? 3 : 0;
	if (strncmp(name, "python3.", 8) != 0)
		return 0;
	name += 8;
	/* At most two digits without leading zeros: "3.011" is not a version. */
	for (size_t i = 0; i < 2 && name[0] >= (i ? '0' : '1') && name[0] <= '9'; i++)
		minor = minor * 10 + (unsigned int)(*name++ - '0');
	if (is_library ? strncmp(name, ".so", 3) != 0 || (name[3] && name[3] != '.') : name[0])
		return 0;
	return python_layout(minor) ? minor : 0;
}

bool python_is_named(const char *path)
{
	return minor_of_name(path) != 0;
}

/* The file's contents at a link-time address: the variable before the program ran. */
static bool read_variable(const struct elf_image *image, uint64_t vaddr, void *dst, size_t len)
{
	for (size_t i = 0; i < image->n_segments; i++) {
		const struct elf_segment *s = &image->segments[i];
		uint64_t off;

		if (s->type != PT_LOAD || vaddr < s->vaddr || vaddr - s->vaddr > s->filesz ||
		    len > s->filesz - (vaddr - s->vaddr))
			continue;
		return !__builtin_add_overflow(s->offset, vaddr - s->vaddr, &off) &&
		       elf_image_read(image, off, dst, len) == 0;
	}
	return false;
}

/* 0x030b02f0 is 3.11.2. */
static bool is_version(uint64_t version, unsigned int minor)
{
	return version >> 16 == (3U << 8 | minor);
}

static bool offsets_agree(const struct elf_image *image, uint64_t runtime,
			  const struct python_layout *l)
{
	const struct {
		unsigned int at;
		uint32_t expected;
	} checks[] = {
		{OFFSETS_FREE_THREADED, 0},
		{OFFSETS_INTERPRETERS, l->runtime_interpreters},
		{OFFSETS_INTERPRETER_NEXT, l->interpreter_next},
		{OFFSETS_INTERPRETER_THREADS, l->interpreter_threads},
		{OFFSETS_THREAD_NEXT, l->thread_next},
		{OFFSETS_THREAD_FRAME, l->thread_frame},
		{OFFSETS_THREAD_ID, l->thread_id},
		{OFFSETS_FRAME_PREVIOUS, l->frame_previous},
		{OFFSETS_FRAME_CODE, l->frame_code},
		{OFFSETS_FRAME_INSTR, l->frame_instr},
		{OFFSETS_FRAME_OWNER, l->frame_entry},
		{OFFSETS_CODE_FILENAME, l->code_filename},
		{OFFSETS_CODE_QUALNAME, l->code_name},
		{OFFSETS_CODE_LINES, l->code_lines},
		{OFFSETS_CODE_FIRSTLINENO, l->code_firstlineno},
		{OFFSETS_CODE_INSTRS, l->code_instrs},
	};
	uint64_t offsets[N_OFFSETS];

	if (!read_variable(image, runtime, offsets, sizeof(offsets)) ||
	    memcmp(&offsets[OFFSETS_COOKIE], "xdebugpy", 8) != 0 ||
	    !is_version(offsets[OFFSETS_VERSION], l->minor))
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(checks); i++)
		if (offsets[checks[i].at] != checks[i].expected)
			return false;
	return true;
}

static bool file_agrees(const struct elf_image *image, const struct elf_symbol *found,
			unsigned int minor)
{
	uint64_t version;

	if (minor < 11)
		return found[VERSION].value == 0;
	if (!read_variable(image, found[VERSION].value, &version, sizeof(version)) ||
	    !is_version(version, minor))
		return false;
	return minor < 13 || offsets_agree(image, found[RUNTIME].value, python_layout(minor));
}

/* Interpreters export their variables to extensions; statically linked ones do not. */
static bool find_symbols(const struct elf_image *image, struct elf_symbol *wanted)
{
	if (elf_symbols_find_exported(image, wanted, N_SYMBOLS, NULL) <= 0 &&
	    elf_symbols_find(image, wanted, N_SYMBOLS, NULL) <= 0)
		return false;
	return wanted[RUNTIME].value && wanted[CODE_TYPE].value;
}

void python_symbols_read(const struct elf_image *image, const char *path,
			 struct python_symbols *ret_symbols)
{
	struct elf_symbol wanted[N_SYMBOLS] = {
		[RUNTIME] = {.name = "_PyRuntime"},
		[CODE_TYPE] = {.name = "PyCode_Type"},
		[VERSION] = {.name = "Py_Version"},
	};
	unsigned int minor = minor_of_name(path);

	*ret_symbols = (struct python_symbols){0};
	if (minor == 0 || !find_symbols(image, wanted) || !file_agrees(image, wanted, minor))
		return;
	*ret_symbols = (struct python_symbols){
		.minor = minor,
		.runtime = wanted[RUNTIME].value,
		.code_type = wanted[CODE_TYPE].value,
	};
}
