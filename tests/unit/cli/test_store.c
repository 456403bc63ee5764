/* tests/unit/cli/test_store.c: `sonde store`, and what `sonde query` says of a damaged store. */
#include "../store/test_model.h"

#include <fcntl.h>
#include <sys/file.h>

#include "base/io.h"
#include "cli/options.h"
#include "store/sqlite/seal.h"

#define DATE "2024-10-04"

/* Runs a command with what it prints in ret, standard error included. */
static int run_command(const struct cli_command *command, char *const *argv, int argc,
		       struct buf *ret)
{
	char path[] = "/tmp/sonde-said-XXXXXX";
	int said = mkstemp(path), out = dup(STDOUT_FILENO), err = dup(STDERR_FILENO), code;
	struct cli_args args = {0};

	assert_true(said >= 0 && out >= 0 && err >= 0);
	assert_int_equal(cli_args_parse(command, argc, argv, &args, NULL), 0);
	(void)fflush(NULL);
	assert_true(dup2(said, STDOUT_FILENO) >= 0 && dup2(said, STDERR_FILENO) >= 0);
	code = command->run(&args);
	(void)fflush(NULL);
	assert_true(dup2(out, STDOUT_FILENO) >= 0 && dup2(err, STDERR_FILENO) >= 0);
	(void)close(out);
	(void)close(err);
	(void)close(said);
	buf_clear(ret);
	assert_int_equal(io_read_file(AT_FDCWD, path, ret, NULL), 0);
	(void)unlink(path);
	return code;
}

static int run_store(struct rig *rig, const char *action, struct buf *ret)
{
	char *argv[] = {(char *)action, (char *)"--data-dir", rig->dir};

	return run_command(&cmd_store, argv, 3, ret);
}

static bool says(struct buf *said, const char *text)
{
	return strstr(buf_cstr(said), text) != NULL;
}

/* Every third page behind the first ones, which hold the tables' roots. */
static void damage_pages(const char *path)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	off_t size = lseek(fd, 0, SEEK_END);

	assert_true(size > 60 * STORE_SEAL_PAGE);
	for (off_t at = 30 * STORE_SEAL_PAGE; at < size; at += 3 * STORE_SEAL_PAGE)
		assert_int_equal(pwrite(fd, "damaged", 7, at + 2000), 7);
	(void)close(fd);
}

static void damage_is_listed_said_by_queries_and_taken_out(void **state)
{
	_cleanup_(buf_release) struct buf said = {0};
	char *query[] = {(char *)"svc",	      (char *)"--data-dir", NULL,
			 (char *)"--from",    (char *)"1728000000", (char *)"--to",
			 (char *)"1728086400"};
	char lock_path[128];
	struct rig rig;
	int lock;

	(void)state;
	rig_init(&rig);
	for (int i = 0; i < 2000; i++)
		assert_int_equal(write_one(&rig, "1", DAY_0 + i * SEC_NS, (unsigned int)i, 1), 0);
	assert_int_equal(store_commit(rig.store, NULL), 0);
	store_close(rig.store);
	rig.store = NULL;
	query[2] = rig.dir;
	assert_int_equal(run_store(&rig, "check", &said), CLI_OK);
	assert_true(says(&said, DATE ".db") && says(&said, "whole"));
	assert_int_equal(run_command(&cmd_query, query, 7, &said), CLI_OK);
	assert_false(says(&said, "damaged"));

	damage_pages(rig_day(&rig, DATE));
	assert_int_equal(run_store(&rig, "check", &said), CLI_FAILURE);
	assert_true(says(&said, "damaged\n  ") && says(&said, "page ") &&
		    says(&said, "sonde store repair"));
	assert_int_equal(run_command(&cmd_query, query, 7, &said), CLI_OK);
	assert_true(says(&said, DATE ".db is damaged"));
	assert_int_equal(access(rig_day(&rig, DATE), F_OK), 0);

	/* Not while an agent uses it. */
	(void)snprintf(lock_path, sizeof(lock_path), "%s/agent.lock", rig.dir);
	lock = open(lock_path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	assert_int_equal(flock(lock, LOCK_EX | LOCK_NB), 0);
	assert_int_equal(run_store(&rig, "repair", &said), CLI_FAILURE);
	assert_true(says(&said, "another sonde"));
	(void)close(lock);

	assert_int_equal(run_store(&rig, "repair", &said), CLI_OK);
	assert_true(says(&said, "repaired") && says(&said, "dropped"));
	assert_int_equal(run_store(&rig, "check", &said), CLI_OK);
	assert_int_equal(run_command(&cmd_query, query, 7, &said), CLI_OK);
	assert_false(says(&said, "is damaged"));
	rig_release(&rig);
}

static void a_store_that_is_json_is_an_array(void **state)
{
	_cleanup_(buf_release) struct buf said = {0};
	char *argv[] = {(char *)"check", (char *)"--json", (char *)"--data-dir", NULL};
	struct rig rig;

	(void)state;
	rig_init(&rig);
	assert_int_equal(write_one(&rig, "1", DAY_0, 1, 1), 0);
	assert_int_equal(store_commit(rig.store, NULL), 0);
	argv[3] = rig.dir;
	assert_int_equal(run_command(&cmd_store, argv, 4, &said), CLI_OK);
	assert_true(says(&said, "[{\"file\":\"" DATE ".db\",\"state\":\"whole\""));
	assert_true(
		says(&said, "\"damaged\":0,\"corrected\":0,\"checksums\":true,\"findings\":[]}]"));
	rig_release(&rig);
}

static void another_word_than_check_or_repair_is_a_usage_error(void **state)
{
	_cleanup_(buf_release) struct buf said = {0};
	struct rig rig;

	(void)state;
	rig_init(&rig);
	assert_int_equal(run_store(&rig, "fix", &said), CLI_USAGE);
	assert_true(says(&said, "neither check nor repair"));
	rig_release(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(damage_is_listed_said_by_queries_and_taken_out),
		cmocka_unit_test(a_store_that_is_json_is_an_array),
		cmocka_unit_test(another_word_than_check_or_repair_is_a_usage_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
