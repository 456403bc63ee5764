/*
 * src/pipeline/spool/folder.h: the directory of a spool: its owner, its files, the read position.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

/* Created if missing; private, and locked while open. */
int spool_folder_open(const char *dir, int *ret_fd, struct err *err);
/* The numbers of all segments, ascending. -E2BIG if there are absurdly many. */
int spool_folder_list(int dirfd, uint64_t **ret_numbers, size_t *ret_n);

/* The read position; false if unknown. */
bool spool_position_read(int dirfd, uint64_t *ret_number, uint64_t *ret_at);
/* Need not be durable: without it messages are sent again. */
int spool_position_write(int dirfd, uint64_t number, uint64_t at);
void spool_position_remove(int dirfd);
