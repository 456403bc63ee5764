/* src/cli/data_dir.c: see data_dir.h. */
#include "cli/data_dir.h"

#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/io.h"
#include "cli/cli.h"
#include "query/query.h"
#include "store/sqlite/sqlite.h"

#define HOUR_NS ((int64_t)3600 * (int64_t)NS_PER_SEC)

int data_dir_path(const char *dir, char **ret_dir, struct err *err)
{
	const char *data = getenv("XDG_DATA_HOME");
	const char *home = getenv("HOME");
	const struct passwd *user;
	char *text = NULL;
	int n;

	if (dir && !dir[0])
		return err_set(err, -EINVAL, "--data-dir needs a directory");
	if (!dir)
		dir = getenv("SONDE_DATA_DIR");
	if (dir && dir[0]) {
		n = asprintf(&text, "%s", dir);
	} else if (geteuid() == 0) {
		n = asprintf(&text, "/var/lib/sonde");
	} else if (data && data[0] == '/') {
		n = asprintf(&text, "%s/sonde", data);
	} else {
		user = home && home[0] == '/' ? NULL : getpwuid(geteuid());
		if (user)
			home = user->pw_dir;
		if (!home || home[0] != '/')
			return err_set(err, -EINVAL,
				       "no home directory for profiles; use --data-dir");
		n = asprintf(&text, "%s/.local/share/sonde", home);
	}
	if (n < 0)
		return err_oom(err);
	*ret_dir = text;
	return 0;
}

int data_dir_make(const char *dir, struct err *err)
{
	_cleanup_free_ char *path = strdup(dir);

	if (!path)
		return err_oom(err);
	for (char *p = path + 1;; p++) {
		char end = *p;

		if (end && end != '/')
			continue;
		*p = 0;
		if (mkdir(path, 0700) < 0 && errno != EEXIST)
			return err_lack(err, -errno, ERR_CAUSE_DISK, "use another --data-dir",
					"cannot create %s: %s", path, strerror(errno));
		if (!end)
			return 0;
		*p = end;
	}
}

int data_dir_lock(const char *dir, int *ret_fd, pid_t *ret_killed, struct err *err)
{
	_cleanup_free_ char *path = NULL;
	_cleanup_close_ int fd = -1;
	char pid[16] = "";

	if (asprintf(&path, "%s/agent.lock", dir) < 0) {
		path = NULL;
		return err_oom(err);
	}
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return err_lack(err, -errno, ERR_CAUSE_DISK, "use another --data-dir",
				"cannot open %s: %s", path, strerror(errno));
	(void)io_pread_full(fd, pid, sizeof(pid) - 1, 0);
	pid[strspn(pid, "0123456789")] = 0;
	if (flock(fd, LOCK_EX | LOCK_NB) < 0)
		return err_set(err, -EBUSY,
			       "another sonde (process %s) is using %s; stop it, or use another "
			       "--data-dir and --listen",
			       pid[0] ? pid : "?", dir);
	if (ret_killed)
		*ret_killed = (pid_t)strtol(pid, NULL, 10);
	(void)snprintf(pid, sizeof(pid), "%d\n", (int)getpid());
	if (ftruncate(fd, 0) < 0 || io_write_full(fd, pid, strlen(pid)) < 0)
		return err_set(err, -EIO, "cannot write %s: is the disk full?", path);
	*ret_fd = TAKE_FD(fd);
	return 0;
}

void data_dir_unlockp(const int *fd)
{
	if (*fd < 0)
		return;
	/* A pid that is still there tells the next one that we were killed. */
	if (ftruncate(*fd, 0) < 0)
		cli_note("cannot write to the lock file: %s", strerror(errno));
	(void)close(*fd);
}

int data_dir_open(const char *dir, struct store **ret_store, struct err *err)
{
	_cleanup_free_ char *path = NULL;
	struct store_sqlite_config config = {0};
	struct stat st;
	int r = data_dir_path(dir, &path, err);

	if (r < 0)
		return r;
	/* Opening would create it. */
	if (stat(path, &st) < 0)
		return err_set(err, -errno, "%s: %s; start `sonde run`, or use its --data-dir",
			       path, strerror(errno));
	if (!S_ISDIR(st.st_mode))
		return err_set(err, -ENOTDIR, "%s is not a directory", path);
	config.dir = path;
	return store_sqlite_open(&config, ret_store, err);
}

static int stored_time(const char *option, const char *text, int64_t now_ns, int64_t *ret_ns,
		       struct err *err)
{
	int r = query_parse_time(text, now_ns, ret_ns, err);

	return r < 0 ? err_prefix(err, r, "%s", option) : 0;
}

int data_dir_window(const char *from, const char *to, struct store_window *ret_window,
		    struct err *err)
{
	int64_t now_ns = (int64_t)clock_unix_ns();
	int64_t from_ns, to_ns = now_ns;
	int r = to ? stored_time("--to", to, now_ns, &to_ns, err) : 0;

	if (r < 0)
		return r;
	from_ns = MAX(to_ns - HOUR_NS, 0);
	if (from)
		r = stored_time("--from", from, now_ns, &from_ns, err);
	if (r < 0)
		return r;
	if (from_ns >= to_ns)
		return err_set(err, -EINVAL, "--from must be earlier than --to");
	ret_window->from_ns = from_ns;
	ret_window->to_ns = to_ns;
	ret_window->stands = true;
	return 0;
}

void data_dir_tell_damage(struct store *store)
{
	struct store_status s = {0};

	store_status(store, &s);
	if (s.damage[0])
		cli_note("%s", s.damage);
}
