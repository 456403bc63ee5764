/*
 * src/store/sqlite/vfs.c: see vfs.h. Files are those of the usual VFS, each with its own copy of
 * the table of methods, in which reading and writing are ours.
 */
#include "store/sqlite/vfs.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "store/sqlite/day.h"
#include "store/sqlite/rebuild.h"
#include "store/sqlite/seal.h"

#define PAGE STORE_SEAL_PAGE
#define RESERVED_AT 20 /* in a database's header: bytes at the end of each page */
#define PAGES_AT 28    /* its size, big-endian */
#define APPLICATION_AT 68
/* In the log; see seal.h. */
#define LOG_SUMS 8
#define LOG_HEAD_SUMS 24
#define LOG_FRAME_SUMS 16

/* Behind SQLite's own part of a file. */
struct vfs_file {
	sqlite3_io_methods methods; /* first: how it is found from the file */
	const sqlite3_io_methods *base;
	struct vfs_file *db; /* of a log: its database */
	sqlite3_file *log;   /* of a database, while it is open */
	bool writes;	     /* the connection may be in the middle of writing to the log */
	bool sealed;
	bool checkpoint; /* the log is being written back */
	bool spoil;	 /* the next page comes from a damaged frame */
	bool has_head;
	bool recovers; /* the head of the log was read, and nothing was written since */
	uint8_t head[STORE_SEAL_LOG_HEAD]; /* of the log */
	uint8_t sums[LOG_SUMS];		   /* of the last frame that was recovered */
	struct store_vfs_damage damage;
};

static struct vfs_file *file_of(sqlite3_file *f)
{
	return (struct vfs_file *)(uintptr_t)f->pMethods;
}

static bool is_noted(const struct vfs_file *x, uint32_t page, enum store_vfs_kind kind)
{
	const struct store_vfs_damage *d = &x->db->damage;

	for (size_t i = 0; i < d->n; i++)
		if (d->items[i].page == page && d->items[i].kind == kind)
			return true;
	return false;
}

static void note(struct vfs_file *x, uint32_t page, enum store_vfs_kind kind)
{
	struct store_vfs_damage *d = &x->db->damage;

	if (is_noted(x, page, kind) || d->n == ARRAY_SIZE(d->items))
		return;
	d->items[d->n].page = page;
	d->items[d->n++].kind = kind;
}

/* Either says so: one flipped bit does not turn the checksums off. */
static bool says_sealed(const uint8_t *page)
{
	static const uint8_t application[] = {'s', 'o', 'n', 'd'};

	return page[RESERVED_AT] == STORE_SEAL_BYTES ||
	       memcmp(page + APPLICATION_AT, application, sizeof(application)) == 0;
}

/* --- pages that are made anew */

/* What the log holds: the page of each frame, up to the last commit. */
struct vfs_frames {
	size_t n;
	uint32_t *pages;
};

struct vfs_rebuild {
	sqlite3_file *f;
	struct vfs_frames frames;
};

static uint32_t frame_page(const uint8_t *frame)
{
	return (uint32_t)frame[0] << 24 | (uint32_t)frame[1] << 16 | (uint32_t)frame[2] << 8 |
	       frame[3];
}

static bool is_commit(const uint8_t *frame)
{
	return memcmp(frame + 4, "\0\0\0", 4) != 0;
}

static int add_frame(struct vfs_frames *frames, size_t i, uint32_t page)
{
	/* At powers of two. */
	if ((i & (i - 1)) == 0) {
		uint32_t *pages = realloc(frames->pages, MAX(2 * i, 16) * sizeof(*pages));

		if (!pages)
			return -ENOMEM;
		frames->pages = pages;
	}
	frames->pages[i] = page;
	return 0;
}

/* Returns -EBADMSG if it is damaged itself; one that ends in the middle of a commit is not. */
static int list_frames(sqlite3_file *log, struct vfs_frames *frames)
{
	uint8_t head[STORE_SEAL_LOG_HEAD], sums[LOG_SUMS], frame[STORE_SEAL_FRAME];
	const sqlite3_io_methods *base = file_of(log)->base;
	sqlite3_int64 at = STORE_SEAL_LOG_HEAD;

	if (base->xRead(log, head, sizeof(head), 0) != SQLITE_OK)
		return 0;
	if (store_seal_check_log(head) != STORE_SEAL_WHOLE)
		return -EBADMSG;
	memcpy(sums, head + LOG_HEAD_SUMS, sizeof(sums));
	for (size_t i = 0; base->xRead(log, frame, sizeof(frame), at) == SQLITE_OK; i++) {
		enum store_seal seal = store_seal_check_frame(head, sums, frame);

		if (seal == STORE_SEAL_BROKEN)
			break;
		if (seal != STORE_SEAL_WHOLE)
			return -EBADMSG;
		if (add_frame(frames, i, frame_page(frame)) < 0)
			return -ENOMEM;
		if (is_commit(frame))
			frames->n = i + 1;
		memcpy(sums, frame + LOG_FRAME_SUMS, sizeof(sums));
		at += sizeof(frame);
	}
	return 0;
}

static int read_version(void *ctx, uint32_t number, unsigned int version, uint8_t *page)
{
	const struct vfs_rebuild *r = ctx;
	sqlite3_file *log = file_of(r->f)->log;
	size_t i = 0;

	if (version == 0)
		return file_of(r->f)->base->xRead(
			       r->f, page, PAGE, (sqlite3_int64)(number - 1) * PAGE) == SQLITE_OK &&
		       store_seal_check_page(page, number, true) != STORE_SEAL_BROKEN;
	while (i < r->frames.n && (r->frames.pages[i] != number || --version > 0))
		i++;
	if (i == r->frames.n)
		return -ENOENT;
	return file_of(log)->base->xRead(log, page, PAGE,
					 STORE_SEAL_LOG_HEAD + (sqlite3_int64)i * STORE_SEAL_FRAME +
						 STORE_SEAL_FRAME_HEAD) == SQLITE_OK;
}

static void note_lost(void *ctx, uint32_t number)
{
	const struct vfs_rebuild *r = ctx;

	note(file_of(r->f), number, STORE_VFS_LOST);
}

static bool is_logged(const struct vfs_frames *frames, uint32_t number)
{
	for (size_t i = 0; i < frames->n; i++)
		if (frames->pages[i] == number)
			return true;
	return false;
}

/* For readers: a writer would go by it. */
static bool rebuild(sqlite3_file *f, uint8_t *page, uint32_t number)
{
	struct vfs_file *x = file_of(f);
	struct vfs_rebuild r = {.f = f};
	struct store_rebuild from = {.ctx = &r, .read = read_version, .lost = note_lost};
	sqlite3_int64 size;
	uint8_t fresh[PAGE];
	bool made = false;

	if (x->writes || x->base->xFileSize(f, &size) != SQLITE_OK)
		return false;
	from.n_pages = (uint32_t)(size / PAGE);
	for (int format = 5; number == 1 && format >= 4; format--)
		if (store_day_first_page(fresh, format) == 0 &&
		    store_rebuild_first(&from, fresh, page))
			return true;
	if (number == 1)
		return false;
	if (!x->log || list_frames(x->log, &r.frames) == 0)
		made = !is_logged(&r.frames, number) && store_rebuild_interior(&from, number, page);
	free(r.frames.pages);
	return made;
}

/* Without a first page that says so, it has checksums if the second one does. */
static bool is_sealed(sqlite3_file *f, const uint8_t *first)
{
	uint8_t page[PAGE];

	return says_sealed(first) || (file_of(f)->base->xRead(f, page, PAGE, PAGE) == SQLITE_OK &&
				      store_seal_check_page(page, 2, false) == STORE_SEAL_WHOLE);
}

/* A page of which nothing is left. */
static int renew_page(sqlite3_file *f, uint8_t *page, uint32_t number)
{
	struct vfs_file *x = file_of(f);
	bool made = !is_noted(x, number, STORE_VFS_LOST) && rebuild(f, page, number);

	note(x, number, made ? STORE_VFS_CORRECTED : STORE_VFS_LOST);
	return made ? SQLITE_OK : STORE_VFS_DAMAGED;
}

static int check_page(sqlite3_file *f, uint8_t *page, uint32_t number)
{
	struct vfs_file *x = file_of(f);

	if (number == 1)
		x->sealed = is_sealed(f, page);
	if (!x->sealed)
		return SQLITE_OK;
	/* Whoever goes on behind a lost page comes to it several times. */
	switch (store_seal_check_page(page, number, !is_noted(x, number, STORE_VFS_LOST))) {
	case STORE_SEAL_WHOLE:
		return SQLITE_OK;
	case STORE_SEAL_CORRECTED:
		note(x, number, STORE_VFS_CORRECTED);
		return SQLITE_OK;
	default:
		return renew_page(f, page, number);
	}
}

/* What follows the end of a file that was cut off is damaged like any other page. */
static int check_end(sqlite3_file *f, uint8_t *page, uint32_t number)
{
	struct vfs_file *x = file_of(f);

	if (x->writes || !x->sealed || number == 1)
		return SQLITE_IOERR_SHORT_READ;
	return renew_page(f, page, number);
}

/*
 * Readers see the size that the header tells: of a file that is shorter, the rest is whole. Where
 * there is a log, SQLite goes by that.
 */
static int db_size(sqlite3_file *f, sqlite3_int64 *ret)
{
	struct vfs_file *x = file_of(f);
	uint8_t page[PAGE];
	int rc = x->base->xFileSize(f, ret);
	sqlite3_int64 told;

	if (rc != SQLITE_OK || x->writes || *ret < PAGE ||
	    x->base->xRead(f, page, PAGE, 0) != SQLITE_OK || !says_sealed(page) ||
	    store_seal_check_page(page, 1, true) == STORE_SEAL_BROKEN)
		return rc;
	told = ((sqlite3_int64)page[PAGES_AT] << 24 | page[PAGES_AT + 1] << 16 |
		page[PAGES_AT + 2] << 8 | page[PAGES_AT + 3]) *
	       PAGE;
	*ret = MAX(*ret, told);
	return rc;
}

static int db_read(sqlite3_file *f, void *to, int n, sqlite3_int64 at)
{
	struct vfs_file *x = file_of(f);
	uint32_t number = (uint32_t)(at / PAGE) + 1;
	uint8_t page[PAGE];
	int rc;

	if (n == PAGE && at % PAGE == 0) {
		rc = x->base->xRead(f, to, n, at);
		if (rc == SQLITE_IOERR_SHORT_READ)
			return check_end(f, to, number);
		return rc == SQLITE_OK ? check_page(f, to, number) : rc;
	}
	/* Part of a page: the header, or the end of a long row. */
	if (at % PAGE + n > PAGE)
		return x->base->xRead(f, to, n, at);
	rc = x->base->xRead(f, page, PAGE, at - at % PAGE);
	rc = rc == SQLITE_IOERR_SHORT_READ ? check_end(f, page, number)
	     : rc == SQLITE_OK		   ? check_page(f, page, number)
					   : rc;
	if (rc == SQLITE_IOERR_SHORT_READ)
		return x->base->xRead(f, to, n, at);
	if (rc == SQLITE_OK)
		memcpy(to, page + at % PAGE, (size_t)n);
	return rc;
}

static int db_write(sqlite3_file *f, const void *from, int n, sqlite3_int64 at)
{
	struct vfs_file *x = file_of(f);
	uint8_t page[PAGE];

	if (n != PAGE || at % PAGE != 0)
		return x->base->xWrite(f, from, n, at);
	if (at == 0)
		x->sealed = ((const uint8_t *)from)[RESERVED_AT] == STORE_SEAL_BYTES;
	if (!x->sealed)
		return x->base->xWrite(f, from, n, at);
	memcpy(page, from, PAGE);
	store_seal_page(page, (uint32_t)(at / PAGE) + 1);
	/* Stays damaged in its new place. */
	if (x->spoil)
		memset(page + PAGE - STORE_SEAL_BYTES, 0xff, STORE_SEAL_BYTES);
	x->spoil = false;
	return x->base->xWrite(f, page, PAGE, at);
}

static int db_control(sqlite3_file *f, int op, void *arg)
{
	struct vfs_file *x = file_of(f);

	if (op == SQLITE_FCNTL_CKPT_START)
		x->checkpoint = true;
	if (op == SQLITE_FCNTL_CKPT_DONE)
		x->checkpoint = x->spoil = false;
	return x->base->xFileControl(f, op, arg);
}

/* Pages in mapped memory would not be checked. */
static int db_fetch(sqlite3_file *f, sqlite3_int64 at, int n, void **ret)
{
	(void)f, (void)at, (void)n;
	*ret = NULL;
	return SQLITE_OK;
}

/* --- the log */

static int note_frame(struct vfs_file *x, const uint8_t *frame, enum store_seal seal)
{
	uint32_t number = frame_page(frame);

	if (seal == STORE_SEAL_WHOLE)
		return SQLITE_OK;
	note(x, number, seal == STORE_SEAL_CORRECTED ? STORE_VFS_CORRECTED : STORE_VFS_LOST);
	return seal == STORE_SEAL_CORRECTED ? SQLITE_OK : STORE_VFS_DAMAGED;
}

/* What recovery of the log reads first. */
static int log_read_head(sqlite3_file *f, uint8_t *head)
{
	struct vfs_file *x = file_of(f);
	int rc = x->base->xRead(f, head, STORE_SEAL_LOG_HEAD, 0);
	enum store_seal seal;

	x->has_head = false;
	x->recovers = true;
	if (rc != SQLITE_OK)
		return rc;
	seal = store_seal_check_log(head);
	x->has_head = seal == STORE_SEAL_WHOLE || seal == STORE_SEAL_CORRECTED;
	memcpy(x->head, head, STORE_SEAL_LOG_HEAD);
	memcpy(x->sums, head + LOG_HEAD_SUMS, sizeof(x->sums));
	if (seal != STORE_SEAL_WHOLE)
		note(x, 0, x->has_head ? STORE_VFS_CORRECTED : STORE_VFS_LOG);
	return SQLITE_OK;
}

/*
 * Whether frames of this round of the log follow a commit at or after this one. If so, the commit
 * was made durable, and the frame is damaged. If not, it is the end of what a process was writing
 * when it was killed.
 */
static bool is_followed(sqlite3_file *f, sqlite3_int64 at)
{
	struct vfs_file *x = file_of(f);
	uint8_t head[STORE_SEAL_FRAME_HEAD];
	bool committed = false;

	for (; x->base->xRead(f, head, sizeof(head), at) == SQLITE_OK; at += STORE_SEAL_FRAME) {
		if (memcmp(head + 8, x->head + 16, 8) != 0)
			continue;
		if (committed)
			return true;
		committed = is_commit(head);
	}
	return false;
}

/* Recovery ends with the first frame that does not fit. */
static int log_recover_frame(sqlite3_file *f, uint8_t *frame, sqlite3_int64 at)
{
	struct vfs_file *x = file_of(f);
	int rc = x->base->xRead(f, frame, STORE_SEAL_FRAME, at);
	enum store_seal seal;

	if (rc != SQLITE_OK || !x->has_head)
		return rc;
	seal = store_seal_check_frame(x->head, x->sums, frame);
	memcpy(x->sums, frame + LOG_FRAME_SUMS, sizeof(x->sums));
	if (seal == STORE_SEAL_CORRECTED)
		return note_frame(x, frame, seal);
	if (seal == STORE_SEAL_FLIPPED || (seal == STORE_SEAL_BROKEN && is_followed(f, at)))
		note(x, 0, STORE_VFS_LOG);
	return SQLITE_OK;
}

/* As it is now: a log that starts over gets another one. */
static int log_reload_head(sqlite3_file *f)
{
	struct vfs_file *x = file_of(f);
	int rc = x->base->xRead(f, x->head, STORE_SEAL_LOG_HEAD, 0);
	enum store_seal seal = rc == SQLITE_OK ? store_seal_check_log(x->head) : STORE_SEAL_BROKEN;

	x->has_head = seal == STORE_SEAL_WHOLE || seal == STORE_SEAL_CORRECTED;
	return rc;
}

/* The sums that a frame goes on from. careful: they may be what is damaged. */
static int log_read_sums(sqlite3_file *f, sqlite3_int64 begin, bool careful, uint8_t *sums)
{
	struct vfs_file *x = file_of(f);
	sqlite3_int64 before = begin - STORE_SEAL_FRAME;
	uint8_t frame[STORE_SEAL_FRAME];
	int rc;

	if (begin == STORE_SEAL_LOG_HEAD) {
		memcpy(sums, x->head + LOG_HEAD_SUMS, LOG_SUMS);
		return SQLITE_OK;
	}
	if (!careful)
		return x->base->xRead(f, sums, LOG_SUMS, before + LOG_FRAME_SUMS);
	rc = x->base->xRead(f, frame, STORE_SEAL_FRAME, before);
	if (rc == SQLITE_OK)
		rc = log_read_sums(f, before, false, sums);
	if (rc == SQLITE_OK) {
		(void)store_seal_check_frame(x->head, sums, frame);
		memcpy(sums, frame + LOG_FRAME_SUMS, LOG_SUMS);
	}
	return rc;
}

static int log_check_frame(sqlite3_file *f, sqlite3_int64 begin, bool careful, uint8_t *frame,
			   enum store_seal *ret_seal)
{
	struct vfs_file *x = file_of(f);
	int rc = x->base->xRead(f, frame, STORE_SEAL_FRAME, begin);
	uint8_t before[LOG_SUMS];

	*ret_seal = STORE_SEAL_BROKEN;
	if (rc == SQLITE_OK && x->has_head)
		rc = log_read_sums(f, begin, careful, before);
	if (rc == SQLITE_OK && x->has_head)
		*ret_seal = store_seal_check_frame(x->head, before, frame);
	return rc;
}

static int log_read_page(sqlite3_file *f, void *to, sqlite3_int64 at)
{
	struct vfs_file *x = file_of(f);
	sqlite3_int64 begin = at - STORE_SEAL_FRAME_HEAD;
	uint8_t frame[STORE_SEAL_FRAME];
	enum store_seal seal;
	int rc = log_check_frame(f, begin, false, frame, &seal);

	if (rc == SQLITE_OK && seal != STORE_SEAL_WHOLE) {
		rc = log_reload_head(f);
		if (rc == SQLITE_OK)
			rc = log_check_frame(f, begin, true, frame, &seal);
	}
	if (rc == SQLITE_OK)
		rc = note_frame(x, frame, seal);
	memcpy(to, frame + STORE_SEAL_FRAME_HEAD, PAGE);
	if (rc != STORE_VFS_DAMAGED || !x->db->checkpoint)
		return rc;
	x->db->spoil = true;
	return SQLITE_OK;
}

static int log_read(sqlite3_file *f, void *to, int n, sqlite3_int64 at)
{
	struct vfs_file *x = file_of(f);

	if (n == STORE_SEAL_LOG_HEAD && at == 0)
		return log_read_head(f, to);
	/* A writer reads whole frames as well, to renew the sums of those it has written twice. */
	if ((at - STORE_SEAL_LOG_HEAD) % STORE_SEAL_FRAME == 0 && n == STORE_SEAL_FRAME &&
	    x->recovers)
		return log_recover_frame(f, to, at);
	/* Frames of an open transaction get their sums when it is committed. */
	if (n == PAGE && (!x->writes || x->db->checkpoint) &&
	    (at - STORE_SEAL_LOG_HEAD) % STORE_SEAL_FRAME == STORE_SEAL_FRAME_HEAD)
		return log_read_page(f, to, at);
	return x->base->xRead(f, to, n, at);
}

static int log_write(sqlite3_file *f, const void *from, int n, sqlite3_int64 at)
{
	struct vfs_file *x = file_of(f);

	x->recovers = false;
	return x->base->xWrite(f, from, n, at);
}

static int log_close(sqlite3_file *f)
{
	struct vfs_file *x = file_of(f);

	x->db->log = NULL;
	return x->base->xClose(f);
}

/* --- opening */

static size_t base_size(const sqlite3_vfs *base)
{
	return ((size_t)base->szOsFile + 15) / 16 * 16;
}

static int vfs_open(sqlite3_vfs *vfs, const char *name, sqlite3_file *f, int flags, int *ret_flags)
{
	sqlite3_vfs *base = vfs->pAppData;
	struct vfs_file *x = (void *)((char *)f + base_size(base));
	int rc = base->xOpen(base, name, f, flags, ret_flags);

	if (rc != SQLITE_OK || !(flags & (SQLITE_OPEN_MAIN_DB | SQLITE_OPEN_WAL)))
		return rc;
	*x = (struct vfs_file){.methods = *f->pMethods, .base = f->pMethods, .db = x};
	if (flags & SQLITE_OPEN_MAIN_DB) {
		x->writes = flags & SQLITE_OPEN_CREATE;
		x->methods.xRead = db_read;
		x->methods.xWrite = db_write;
		x->methods.xFileSize = db_size;
		x->methods.xFileControl = db_control;
		if (x->methods.iVersion >= 3)
			x->methods.xFetch = db_fetch;
	} else {
		x->db = file_of(sqlite3_database_file_object(name));
		x->writes = x->db->writes;
		x->db->log = f;
		x->methods.xRead = log_read;
		x->methods.xWrite = log_write;
		x->methods.xClose = log_close;
	}
	f->pMethods = &x->methods;
	return rc;
}

static sqlite3_vfs store_vfs;
static int store_vfs_rc;

static void register_once(void)
{
	sqlite3_vfs *base = sqlite3_vfs_find(NULL);

	store_vfs_rc = SQLITE_ERROR;
	if (!base)
		return;
	store_vfs = *base;
	store_vfs.zName = STORE_VFS_NAME;
	store_vfs.pNext = NULL;
	store_vfs.pAppData = base;
	store_vfs.szOsFile = (int)(base_size(base) + sizeof(struct vfs_file));
	store_vfs.xOpen = vfs_open;
	store_vfs_rc = sqlite3_vfs_register(&store_vfs, 0);
}

int store_vfs_register(struct err *err)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	(void)pthread_once(&once, register_once);
	return store_vfs_rc == SQLITE_OK ? 0 : err_set(err, -EIO, "SQLite has no VFS");
}

/* NULL if it could not be opened. */
static sqlite3_file *main_file(sqlite3 *db)
{
	sqlite3_file *f = NULL;

	(void)sqlite3_file_control(db, "main", SQLITE_FCNTL_FILE_POINTER, &f);
	return f && f->pMethods ? f : NULL;
}

int store_vfs_seal(sqlite3 *db)
{
	int bytes = STORE_SEAL_BYTES;

	return sqlite3_file_control(db, "main", SQLITE_FCNTL_RESERVE_BYTES, &bytes);
}

bool store_vfs_is_sealed(sqlite3 *db)
{
	sqlite3_file *f = main_file(db);

	return f && file_of(f)->sealed;
}

const struct store_vfs_damage *store_vfs_damage(sqlite3 *db)
{
	static const struct store_vfs_damage none;
	sqlite3_file *f = main_file(db);

	return f ? &file_of(f)->damage : &none;
}

/* A writer may be writing the page, so what does not fit is read again. */
static int read_again(sqlite3_file *f, sqlite3_int64 at)
{
	static const uint8_t zeros[PAGE];
	struct vfs_file *x = file_of(f);
	uint32_t number = (uint32_t)(at / PAGE) + 1;
	uint8_t page[PAGE], copy[PAGE];
	int rc = SQLITE_OK;

	for (int tries = 0; rc == SQLITE_OK && tries < 3; tries++) {
		rc = x->base->xRead(f, page, PAGE, at);
		if (rc == SQLITE_IOERR_SHORT_READ && check_end(f, page, number) != rc)
			return SQLITE_OK;
		memcpy(copy, page, PAGE);
		/* Zeros: a page that was given up before it was ever written. */
		if (rc == SQLITE_OK &&
		    (memcmp(page, zeros, PAGE) == 0 || !x->sealed ||
		     store_seal_check_page(copy, number, false) == STORE_SEAL_WHOLE))
			return SQLITE_OK;
		(void)sqlite3_sleep(10);
	}
	if (rc == SQLITE_OK)
		(void)check_page(f, page, number);
	return rc;
}

int store_vfs_read_all(sqlite3 *db, uint64_t *ret_pages)
{
	sqlite3_file *f = main_file(db);
	sqlite3_int64 size = 0;
	int rc = f ? f->pMethods->xFileSize(f, &size) : SQLITE_ERROR;

	*ret_pages = (uint64_t)size / PAGE;
	for (sqlite3_int64 at = 0; rc == SQLITE_OK && at + PAGE <= size; at += PAGE)
		rc = read_again(f, at);
	return rc == SQLITE_OK ? 0 : -EIO;
}
