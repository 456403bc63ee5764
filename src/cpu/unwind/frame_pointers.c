/* src/cpu/unwind/frame_pointers.c: see frame_pointers.h. */
#include "cpu/unwind/frame_pointers.h"

#include <string.h>

#include "base/cleanup.h"
#include "elf/symbols.h"

/* Its constants for debuggers, which stripped builds export as well. */
static bool is_v8(const struct elf_image *image)
{
	struct elf_symbol constant = {.name = "v8dbg_off_fp_context"};

	return elf_symbols_find_exported(image, &constant, 1, NULL) == 1;
}

void cpu_runtime_detect(const struct elf_image *image, const char *path,
			struct cpu_runtime *ret_runtime)
{
	static const char *const v8[] = {"node", "libnode", "deno", "electron"};
	const char *slash = strrchr(path, '/');
	const char *name = slash ? slash + 1 : path;

	*ret_runtime = (struct cpu_runtime){.kind = CPU_RUNTIME_NONE};
	/* By name first: looking through the symbols of every file would take long. */
	for (size_t i = 0; i < ARRAY_SIZE(v8); i++)
		if (strncmp(name, v8[i], strlen(v8[i])) == 0 && is_v8(image))
			ret_runtime->kind = CPU_RUNTIME_V8;
	if (strcmp(name, "libcoreclr.so") == 0)
		ret_runtime->kind = CPU_RUNTIME_DOTNET;
	if (strcmp(name, "libjvm.so") == 0 && cpu_hotspot_find(image, &ret_runtime->hotspot))
		ret_runtime->kind = CPU_RUNTIME_HOTSPOT;
}

int cpu_runtime_keeps_fp(const struct cpu_runtime *runtime, pid_t pid, uint64_t bias,
			 bool *ret_keeps)
{
	_cleanup_(proc_mem_closep) struct proc_mem *mem = NULL;
	int r;

	if (runtime->kind != CPU_RUNTIME_HOTSPOT) {
		*ret_keeps = runtime->kind != CPU_RUNTIME_NONE;
		return 0;
	}
	r = proc_mem_open_bare(pid, &mem, NULL);
	return r < 0 ? r : cpu_hotspot_flag(&runtime->hotspot, mem, bias, ret_keeps);
}
