/*
 * src/cpu/unwind/frame_pointers.h: where code without unwind information is known to keep frame
 * pointers. Elsewhere following them is a guess.
 *
 *   V8        always, in compiled code and in the builtins of its file
 *   .NET      always
 *   HotSpot   with -XX:+PreserveFramePointer
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "cpu/unwind/hotspot_flag.h"
#include "elf/image.h"

enum cpu_runtime_kind {
	CPU_RUNTIME_NONE,
	CPU_RUNTIME_V8,
	CPU_RUNTIME_DOTNET,
	CPU_RUNTIME_HOTSPOT,
};

/* What compiles code at run time, if the file does. */
struct cpu_runtime {
	enum cpu_runtime_kind kind;
	struct cpu_hotspot hotspot;
};

void cpu_runtime_detect(const struct elf_image *image, const char *path,
			struct cpu_runtime *ret_runtime);
/*
 * Whether what it compiles in a process that maps it with a bias keeps them. -ENOENT: not known
 * yet.
 */
int cpu_runtime_keeps_fp(const struct cpu_runtime *runtime, pid_t pid, uint64_t bias,
			 bool *ret_keeps);
