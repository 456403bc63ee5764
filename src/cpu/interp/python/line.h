/* src/cpu/interp/python/line.h: the line of an instruction, from its code object's table.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/*
 * instr as in code.h, table in the format of Python 3.minor; first_line if the table does
 * not say.
 */
int64_t python_line(unsigned int minor, const uint8_t *table, size_t len, int64_t first_line,
		    uint32_t instr);
