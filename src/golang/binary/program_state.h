/*
 * src/golang/binary/program_state.h: shared by the files of this room that read a program's file.
 */
#pragma once

#include "base/buf.h"
#include "golang/binary/image.h"
#include "golang/binary/layout.h"
#include "golang/binary/mem_cache.h"
#include "golang/binary/module.h"
#include "golang/binary/program.h"

struct golang_program {
	struct proc_mem *mem; /* the file, at link-time addresses */
	struct golang_image image;
	const struct golang_layout *layout;
	struct golang_mem_cache cache;
	struct golang_module module;
	struct buf text; /* names and files of the last address */
};
