/*
 * src/cpu/interp/kinds.h: the interpreters whose frames are told.
 *
 * A row is a constant and a name. To the name belong the folder cpu/interp/NAME, which its own
 * meson.build adds to the build, and in it
 *
 *   const struct interp_ops interp_NAME      what user space does (interp.h)
 *   int interp_NAME_step(walk, layout)       what BPF does (interp_shared.h)
 */
#pragma once

#define INTERP_KINDS(ROW) ROW(PYTHON, python)

#define INTERP_KIND(constant, name) INTERP_##constant,
enum interp_kind { INTERP_NONE, INTERP_KINDS(INTERP_KIND) INTERP_N };
#undef INTERP_KIND
