/* src/cpu/interp/python/line.h: the line of an instruction, by the table that its code object has.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/*
 * instr as in code.h, table in the format of Python 3.minor; first_line where the table does
 * not tell.
 */
int64_t python_line(unsigned int minor, const uint8_t *table, size_t len, int64_t first_line,
		    uint32_t instr);
