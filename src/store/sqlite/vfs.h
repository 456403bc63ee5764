/*
 * src/store/sqlite/vfs.h: how SQLite reads and writes day files: every page has a checksum, which
 * is checked when it is read (seal.h). A flipped bit is corrected on the way; a page with more than
 * that cannot be read, unless readers can have it from others (rebuild.h). Frames of the log are
 * checked as well whenever they are read, and not only when the log is recovered.
 *
 * Files without checksums, of older versions, are read as they are. Whoever else writes to a day
 * file with SQLite, or lets it write the log back, leaves pages that look damaged: open them with
 * `sqlite3 -readonly`.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <sqlite3.h>

#include "base/err.h"

#define STORE_VFS_NAME "sonde"
#define STORE_VFS_APPLICATION 0x736f6e64 /* "sond": a file that has checksums says so */
/* What reading a damaged page returns. Not SQLITE_IOERR, which would end the transaction. */
#define STORE_VFS_DAMAGED (SQLITE_CORRUPT | (0x53 << 8))

enum store_vfs_kind {
	STORE_VFS_CORRECTED, /* a bit of a page, or of the log; or the page was made anew */
	STORE_VFS_LOST,	     /* a page */
	STORE_VFS_LOG,	     /* the log is damaged: later commits in it are lost */
};

/* Damage that a connection met; each place once. */
struct store_vfs_damage {
	size_t n;
	struct {
		uint32_t page; /* 0: the log's head */
		enum store_vfs_kind kind;
	} items[32];
};

/* Makes it known to SQLite, once per process. */
int store_vfs_register(struct err *err);
/* Makes a new database carry checksums; before anything is written. */
int store_vfs_seal(sqlite3 *db);
/* Whether it has checksums; valid once it was read. */
bool store_vfs_is_sealed(sqlite3 *db);
/* Of a connection through this; borrowed. */
const struct store_vfs_damage *store_vfs_damage(sqlite3 *db);
/* Reads all pages. Returns how many there are; damage is noted. */
int store_vfs_read_all(sqlite3 *db, uint64_t *ret_pages);
