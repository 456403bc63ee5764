/* src/cli/stored.c: see stored.h. */
#include "cli/stored.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "query/query.h"
#include "store/sqlite.h"

#define HOUR_NS ((int64_t)3600 * (int64_t)NS_PER_SEC)

/* As `sonde run` chooses. */
static int stored_default_dir(char **ret_dir, struct err *err)
{
	const char *data = getenv("XDG_DATA_HOME"), *home = getenv("HOME");
	char *dir = NULL;
	int n;

	if (geteuid() == 0)
		n = asprintf(&dir, "/var/lib/sonde");
	else if (data && data[0] == '/')
		n = asprintf(&dir, "%s/sonde", data);
	else if (home && home[0] == '/')
		n = asprintf(&dir, "%s/.local/share/sonde", home);
	else
		return err_set(err, -EINVAL, "HOME is not set: give --data-dir");
	if (n < 0 || !dir)
		return err_oom(err);
	*ret_dir = dir;
	return 0;
}

int stored_open(const char *dir, struct store **ret_store, struct err *err)
{
	_cleanup_free_ char *usual = NULL;
	struct store_sqlite_config config = {0};
	struct stat st;
	int r;

	if (!dir)
		dir = getenv("SONDE_DATA_DIR");
	if (!dir || !dir[0]) {
		r = stored_default_dir(&usual, err);
		if (r < 0 || !usual)
			return r;
		dir = usual;
	}
	/* Opening would make it. */
	if (stat(dir, &st) < 0)
		return err_set(err, -errno, "%s: %s: start `sonde run`, or give its --data-dir",
			       dir, strerror(errno));
	if (!S_ISDIR(st.st_mode))
		return err_set(err, -ENOTDIR, "%s is not a folder", dir);
	config.dir = dir;
	return store_sqlite_open(&config, ret_store, err);
}

static int stored_time(const char *option, const char *text, int64_t now_ns, int64_t *ret_ns,
		       struct err *err)
{
	int r = query_parse_time(text, now_ns, ret_ns, err);

	return r < 0 ? err_prefix(err, r, "%s", option) : 0;
}

int stored_window(const char *from, const char *to, struct store_window *ret_window,
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
		return err_set(err, -EINVAL,
			       "the window ends before it begins: --from must be "
			       "earlier than --to");
	ret_window->from_ns = from_ns;
	ret_window->to_ns = to_ns;
	return 0;
}
