/*
 * src/store/sqlite/seal.h: the checksums of pages and of the log, and what one flipped bit does to
 * them.
 *
 *   page   offset 0     what SQLite keeps in it
 *          4088         CRC-32C of that, xor the page's number
 *          4092         another sum of the same, of another kind
 *
 *   log    offset 0     header: magic, version, page size, checkpoints, salts (8), sums (8)
 *          32           frames: page number, commit, salts (8), sums (8), page
 *
 * The log is SQLite's own, as are its sums, each of which goes on from the one before. A single
 * flipped bit is found by its effect on the sums, and corrected. The second sum of a page tells
 * such a bit from damage that looks like one by chance; the sums of the log are too weak to find
 * each.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define STORE_SEAL_PAGE 4096
#define STORE_SEAL_BYTES 8 /* at the end of a page */
#define STORE_SEAL_LOG_HEAD 32
#define STORE_SEAL_FRAME_HEAD 24
#define STORE_SEAL_FRAME (STORE_SEAL_FRAME_HEAD + STORE_SEAL_PAGE)

enum store_seal {
	STORE_SEAL_WHOLE,
	STORE_SEAL_CORRECTED, /* it was one bit */
	STORE_SEAL_FLIPPED,   /* of the log: one bit, but several may be it */
	STORE_SEAL_BROKEN,
};

void store_seal_page(uint8_t page[STORE_SEAL_PAGE], uint32_t number);
/* search: for a flipped bit, which takes as long as reading fifty pages. */
enum store_seal store_seal_check_page(uint8_t page[STORE_SEAL_PAGE], uint32_t number, bool search);

enum store_seal store_seal_check_log(uint8_t head[STORE_SEAL_LOG_HEAD]);
/* head: whole. before: the sums of the frame before, or of the head. */
enum store_seal store_seal_check_frame(const uint8_t head[STORE_SEAL_LOG_HEAD],
				       const uint8_t before[8], uint8_t frame[STORE_SEAL_FRAME]);
