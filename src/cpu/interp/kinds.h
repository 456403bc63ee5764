/*
 * src/cpu/interp/kinds.h: the supported interpreters.
 *
 * A row is a constant and a name. The name has a folder, cpu/interp/NAME, with its own meson.build,
 * which defines
 *
 *   const struct interp_ops interp_NAME      what user space does (interp.h)
 *   int interp_NAME_step(walk, layout)       what BPF does (interp_shared.h)
 */
#pragma once

#define INTERP_KINDS(ROW) ROW(PYTHON, python)

#define INTERP_KIND(constant, name) INTERP_##constant,
enum interp_kind { INTERP_NONE, INTERP_KINDS(INTERP_KIND) INTERP_N };
#undef INTERP_KIND
