/* src/cli/data_dir.c: see data_dir.h. */
#include "cli/data_dir.h"

#include <errno.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
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
