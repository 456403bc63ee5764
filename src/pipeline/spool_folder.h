/* src/pipeline/spool_folder.h: the folder of a spool: whose it is, what is in it, the position. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

/* Made if it is not there; ours alone, and locked for as long as it is open. */
int spool_folder_open(const char *dir, int *ret_fd, struct err *err);
/* The numbers of all segments, ascending. -E2BIG for more than anybody has. */
int spool_folder_list(int dirfd, uint64_t **ret_numbers, size_t *ret_n);

/* Where reading ended; false when nobody knows. */
bool spool_position_read(int dirfd, uint64_t *ret_number, uint64_t *ret_at);
/* It need not reach the disk: without it messages are sent again. */
int spool_position_write(int dirfd, uint64_t number, uint64_t at);
void spool_position_remove(int dirfd);
