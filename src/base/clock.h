/* src/base/clock.h: clocks and durations, all in nanoseconds. */
#pragma once

#include <stdint.h>

#define NS_PER_SEC 1000000000ULL
#define NS_PER_MS 1000000ULL

uint64_t clock_mono_ns(void);
uint64_t clock_unix_ns(void);
uint64_t clock_boot_ns(void); /* since boot, sleep included, as start times of processes are */
uint64_t clock_cpu_ns(void);  /* CPU time of this process, user and system */
void clock_sleep_ns(uint64_t ns);

/* Parses "500ms", "30s", "5m", "1h", "7d"; a bare number means seconds. -EINVAL otherwise. */
int clock_parse_duration(const char *s, uint64_t *ret_ns);
