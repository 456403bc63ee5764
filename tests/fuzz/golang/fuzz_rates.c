/*
 * tests/fuzz/golang/fuzz_rates.c: any text as the journal of forced rates. After a first '#' the
 * rest is its file, which is then read and changed as sonde does.
 */
#include <assert.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/io.h"
#include "golang/rates/journal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool same(const struct golang_rate_note *a, const struct golang_rate_note *b)
{
	return a->id.pid == b->id.pid && a->space == b->space &&
	       a->id.start_ticks == b->id.start_ticks && a->old == b->old && a->ours == b->ours &&
	       a->kind == b->kind;
}

static void fuzz_text(struct view bytes)
{
	static struct golang_rate_note notes[GOLANG_RATE_NOTES_MAX], again[GOLANG_RATE_NOTES_MAX];
	_cleanup_(buf_release) struct buf text = buf_with_max(1 << 20);
	size_t len = golang_rate_notes_parse(bytes, notes);

	assert(len <= GOLANG_RATE_NOTES_MAX);
	for (size_t i = 0; i < len; i++)
		assert(notes[i].id.pid > 0 && notes[i].kind <= GOLANG_RATE_MUTEX);
	/* What we would write of it is read as the same. */
	assert(golang_rate_notes_print(notes, len, &text) == 0);
	assert(golang_rate_notes_parse(buf_view(&text), again) == len);
	for (size_t i = 0; i < len; i++)
		assert(same(&notes[i], &again[i]));
}

/* In memory: the journal waits for its disk. */
static char folder_path[] = "/dev/shm/fuzz-rates-XXXXXX";

static void remove_folder(void)
{
	static const char *const names[] = {"forced-rates", "forced-rates.lock"};
	char path[64];

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		(void)snprintf(path, sizeof(path), "%s/%s", folder_path, names[i]);
		(void)unlink(path);
	}
	(void)rmdir(folder_path);
}

static const char *folder(void)
{
	static bool made;

	if (!made && (!mkdtemp(folder_path) || atexit(remove_folder) != 0))
		abort();
	made = true;
	return folder_path;
}

static void write_file(struct view text)
{
	_cleanup_close_ int fd = -1;
	char path[64];

	(void)snprintf(path, sizeof(path), "%s/forced-rates", folder());
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	assert(fd >= 0 && io_write_full(fd, text.data, text.len) == 0);
}

static void fuzz_file(struct view text)
{
	const struct golang_rate_note note = {
		.id = {.pid = 7, .start_ticks = 8}, .space = 9, .old = INT64_MIN, .ours = 512};
	_cleanup_(golang_rate_journal_closep) struct golang_rate_journal *j = NULL;
	_cleanup_free_ struct golang_rate_note *before = NULL, *after = NULL;
	size_t n_before, n_after, had = 0;
	struct err err = {0};

	write_file(text);
	assert(golang_rate_journal_open(folder(), &j, &err) == 0);
	if (golang_rate_journal_read(j, &before, &n_before, &err) < 0) {
		assert(err.text[0]);
		return;
	}
	for (size_t i = 0; i < n_before; i++)
		had += before[i].id.pid == 7 && before[i].id.start_ticks == 8 &&
		       before[i].kind == GOLANG_RATE_HEAP;
	if (golang_rate_journal_add(j, &note, &err) < 0) {
		assert(err.text[0]);
		return;
	}
	assert(golang_rate_journal_has(j, &note, &err) == 1);
	assert(golang_rate_journal_remove(j, &note, &err) == 0);
	assert(golang_rate_journal_read(j, &after, &n_after, &err) == 0);
	/* One of its own is replaced; a second one, which sonde never writes, stays. */
	assert(n_after == n_before - (had > 0));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size && data[0] == '#')
		fuzz_file(view_of(data + 1, size - 1));
	else
		fuzz_text(view_of(data, size));
	return 0;
}
