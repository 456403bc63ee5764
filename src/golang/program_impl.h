/* src/golang/program_impl.h: shared by the files of this room that read a program's file. */
#pragma once

#include "base/buf.h"
#include "golang/image.h"
#include "golang/layout.h"
#include "golang/module.h"
#include "golang/program.h"
#include "golang/windows.h"

struct golang_program {
	struct proc_mem *mem; /* the file, at link-time addresses */
	struct golang_image image;
	const struct golang_layout *layout;
	struct golang_windows windows;
	struct golang_module module;
	struct buf text; /* names and files of the last address */
};
