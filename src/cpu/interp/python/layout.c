/*
 * src/cpu/interp/python/layout.c: see layout.h. For release builds with a GIL on 64-bit machines;
 * debug and free-threaded builds differ. No patch release is known to differ; those of 3.13 publish
 * their offsets (symbols.c).
 */
#include "cpu/interp/python/layout.h"

#include <stddef.h>

#include "base/cleanup.h"

/*
 * Where the fields are declared, in CPython's Include/:
 *   runtime      internal/pycore_runtime.h: interpreters.head
 *   interpreter  internal/pycore_interp.h: next, tstate_head (from 3.11 on threads.head)
 *   thread       cpython/pystate.h: next, thread_id, frame, cframe, current_frame
 *   frame        cpython/frameobject.h: f_code, f_back, f_lasti; from 3.11 on
 *                internal/pycore_frame.h: f_code (3.13: f_executable), previous, prev_instr (3.13:
 *                instr_ptr), is_entry, owner
 *   code         cpython/code.h: co_code_adaptive, co_name, co_qualname, co_filename,
 *                co_firstlineno, co_lnotab, co_linetable
 *   text         cpython/unicodeobject.h: the sizes of PyASCIIObject and PyCompactUnicodeObject
 */
static const struct python_layout layouts[] = {
	/* v3.9.18 */
	{
		.minor = 9,
		.runtime_interpreters = 32,
		.interpreter_next = 0,
		.interpreter_threads = 8,
		.thread_next = 8,
		.thread_id = 176,
		.thread_frame = 24,
		.frame_code = 32,
		.frame_previous = 24,
		.frame_instr = 104,
		.entry = PYTHON_ENTRY_EACH,
		.code_name = 112,
		.code_filename = 104,
		.code_firstlineno = 40,
		.code_lines = 120,
		.text_ascii = 48,
		.text_wide = 72,
	},
	/* v3.10.13 */
	{
		.minor = 10,
		.runtime_interpreters = 32,
		.interpreter_next = 0,
		.interpreter_threads = 8,
		.thread_next = 8,
		.thread_id = 176,
		.thread_frame = 24,
		.frame_code = 32,
		.frame_previous = 24,
		.frame_instr = 96,
		.entry = PYTHON_ENTRY_EACH,
		.code_name = 112,
		.code_filename = 104,
		.code_firstlineno = 40,
		.code_lines = 120,
		.text_ascii = 48,
		.text_wide = 72,
	},
	/* v3.11.7 */
	{
		.minor = 11,
		.runtime_interpreters = 40,
		.interpreter_next = 0,
		.interpreter_threads = 16,
		.thread_next = 8,
		.thread_id = 152,
		.thread_frame = 56,
		.has_cframe = 1,
		.cframe_frame = 8,
		.frame_code = 32,
		.frame_previous = 48,
		.frame_instr = 56,
		.has_pointer = 1,
		.frame_entry = 68,
		.entry = PYTHON_ENTRY_FLAG,
		.code_instrs = 184,
		.code_name = 128,
		.code_filename = 112,
		.code_firstlineno = 72,
		.code_lines = 136,
		.text_ascii = 48,
		.text_wide = 72,
	},
	/* v3.12.1 */
	{
		.minor = 12,
		.runtime_interpreters = 40,
		.interpreter_next = 0,
		.interpreter_threads = 72,
		.thread_next = 8,
		.thread_id = 136,
		.thread_frame = 56,
		.has_cframe = 1,
		.cframe_frame = 0,
		.frame_code = 0,
		.frame_previous = 8,
		.frame_instr = 56,
		.has_pointer = 1,
		.frame_entry = 70,
		.entry = PYTHON_ENTRY_FRAME,
		.code_instrs = 192,
		.code_name = 128,
		.code_filename = 112,
		.code_firstlineno = 68,
		.code_lines = 136,
		.text_ascii = 40,
		.text_wide = 56,
	},
	/* v3.13.0 */
	{
		.minor = 13,
		.runtime_interpreters = 632,
		.interpreter_next = 7264,
		.interpreter_threads = 7344,
		.thread_next = 8,
		.thread_id = 152,
		.thread_frame = 72,
		.frame_code = 0,
		.frame_previous = 8,
		.frame_instr = 56,
		.has_pointer = 1,
		.frame_entry = 70,
		.entry = PYTHON_ENTRY_FRAME,
		.code_instrs = 200,
		.code_name = 128,
		.code_filename = 112,
		.code_firstlineno = 68,
		.code_lines = 136,
		.text_ascii = 40,
		.text_wide = 56,
	},
};

const struct python_layout *python_layout(unsigned int minor)
{
	for (size_t i = 0; i < ARRAY_SIZE(layouts); i++)
		if (layouts[i].minor == minor)
			return &layouts[i];
	return NULL;
}
