/* tests/targets/cgotrace/trace.h: what main.go takes from trace.c. */
#pragma once

void c_outer(int n);
void c_inner(int n);
void trace_context(void *p);
void trace_back(void *p);
