/*
 * src/proc/program.c: what people would call what an interpreter runs; see cmdline.h.
 *
 * Half of all programs are called app.py or Main. Those go by the directory they lie in, or by
 * their package, leaving out parts that are the same everywhere: src, bin, releases/20240131.
 */
#include <string.h>
#include <strings.h>

#include "base/cleanup.h"
#include "proc/cmdline.h"
#include "proc/text.h"

#define PROGRAM_PARTS_MAX 64

/* Files and classes, without what follows the last dot, that say nothing about what they are. */
static const char *const generic_names[] = {
	"app",	      "application", "artisan",	 "asgi",
	"bootstrap",  "cli",	     "console",	 "docker-entrypoint",
	"entrypoint", "index",	     "launcher", "main",
	"manage",     "program",     "rails",	 "run",
	"server",     "start",	     "startup",	 "wsgi",
	"www",	      "__init__",    "__main__", NULL};

/* Directories and packages that say as little. */
static const char *const generic_parts[] = {
	"app",		 "apps",     "application",  "bin",	"bootstrap", "build",	"cli",
	"cmd",		 "code",     "com",	     "current", "deploy",    "dist",	"home",
	"html",		 "io",	     "launcher",     "lib",	"lib64",     "libexec", "local",
	"main",		 "net",	     "node_modules", "opt",	"org",	     "out",	"public",
	"release",	 "releases", "root",	     "sbin",	"scripts",   "server",	"share",
	"site-packages", "src",	     "srv",	     "start",	"startup",   "target",	"tmp",
	"usr",		 "var",	     "www",	     NULL};

static bool is_among(struct view word, const char *const *list)
{
	for (; *list; list++)
		if (word.len == strlen(*list) &&
		    strncasecmp((const char *)word.data, *list, word.len) == 0)
			return true;
	return false;
}

/* The parts of a path, "." and ".." resolved as far as they can be. The first ones if too many. */
struct parts {
	struct view items[PROGRAM_PARTS_MAX];
	size_t len;
};

static void parts_add(struct parts *p, struct view text, char separator)
{
	while (text.len) {
		const uint8_t *end = memchr(text.data, separator, text.len);
		size_t n = end ? (size_t)(end - text.data) : text.len;
		struct view part = view_of(text.data, n);

		text = view_of(text.data + n + (end ? 1 : 0), text.len - n - (end ? 1 : 0));
		if (view_eq(part, view_str("..")) && p->len)
			p->len--;
		else if (n && !view_eq(part, view_str(".")) && !view_eq(part, view_str("..")) &&
			 p->len < PROGRAM_PARTS_MAX)
			p->items[p->len++] = part;
	}
}

static struct view without_extension(struct view name)
{
	const uint8_t *dot = name.len ? memrchr(name.data, '.', name.len) : NULL;

	return dot && dot > name.data ? view_of(name.data, (size_t)(dot - name.data)) : name;
}

/* "20240131", "v1.2.3", "2024-01-31T12": a release of something. */
static bool is_release(struct view part)
{
	size_t digits = 0;

	for (size_t i = 0; i < part.len; i++) {
		uint8_t c = part.data[i];

		if (c >= '0' && c <= '9')
			digits++;
		else if (!strchr(".-_:+vTZr", c) || !c)
			return false;
	}
	return digits > 0;
}

/* The last one before `end` that says something; empty if there is none. */
static struct view parts_telling(const struct parts *p, size_t end)
{
	for (size_t i = end; i-- > 0;) {
		/* Whose home it is in does not say what it is. */
		if (i > 0 && view_eq(p->items[i - 1], view_str("home")))
			break;
		if (!is_among(p->items[i], generic_parts) && !is_release(p->items[i]))
			return p->items[i];
	}
	return view_of(NULL, 0);
}

/* "next" of node_modules/next/dist/bin/next; with its scope, if it has one. Empty if none. */
static struct view package_of(const struct parts *p)
{
	for (size_t i = p->len; i-- > 0;) {
		size_t at = i + 1;
		const uint8_t *begin;

		if (!view_eq(p->items[i], view_str("node_modules")))
			continue;
		begin = at < p->len ? p->items[at].data : NULL;
		if (begin && begin[0] == '@')
			at++;
		if (at + 1 >= p->len || begin[0] == '.')
			break;
		/* Both parts are of one path, which has a slash between them. */
		return view_of(begin, (size_t)(p->items[at].data - begin) + p->items[at].len);
	}
	return view_of(NULL, 0);
}

static struct view file_name(struct view path, const char *cwd)
{
	struct parts parts = {.len = 0};
	struct view base, part;

	if (path.data[0] != '/')
		parts_add(&parts, view_str(cwd), '/');
	parts_add(&parts, path, '/');
	if (!parts.len)
		return path;
	base = parts.items[parts.len - 1];
	part = package_of(&parts);
	if (part.len)
		return part;
	if (!is_among(without_extension(base), generic_names))
		return base;
	part = parts_telling(&parts, parts.len - 1);
	return part.len ? part : base;
}

/* "shop" of "shop-1.2.3-SNAPSHOT.jar": the next release is the same service. */
static struct view without_release(struct view name)
{
	for (size_t i = 1; i + 1 < name.len; i++)
		if ((name.data[i] == '-' || name.data[i] == '_') && name.data[i + 1] >= '0' &&
		    name.data[i + 1] <= '9')
			return view_of(name.data, i);
	return name;
}

/* Nobody says "shop.jar"; .NET's assemblies are the same. */
static struct view without_packaging(struct view name)
{
	static const char *const packagings[] = {".jar", ".war", ".dll", NULL};
	struct view bare = without_extension(name);

	return is_among(view_of(name.data + bare.len, name.len - bare.len), packagings)
		       ? without_release(bare)
		       : name;
}

/* "Elasticsearch" of org.elasticsearch.bootstrap.Elasticsearch, "shop" of com.acme.shop.Main. */
static struct view class_name(struct view class)
{
	struct parts parts = {.len = 0};
	struct view base, part;

	/* A source file. */
	if (class.len > 5 && memcmp(class.data + class.len - 5, ".java", 5) == 0)
		return without_extension(file_name(class, ""));
	/* Either way of writing it: com/acme/Main. */
	parts_add(&parts, class, memchr(class.data, '/', class.len) ? '/' : '.');
	if (!parts.len)
		return class;
	base = parts.items[parts.len - 1];
	if (!is_among(base, generic_names))
		return base;
	part = parts_telling(&parts, parts.len - 1);
	return part.len ? part : base;
}

/* python -m shop.main is "shop"; -m http.server stays what it is. */
static struct view module_name(struct view module)
{
	static const char *const mains[] = {"main", "__main__", "app", "cli", NULL};
	const uint8_t *dot = memrchr(module.data, '.', module.len);
	size_t head = dot ? (size_t)(dot - module.data) : 0;

	if (head && is_among(view_of(dot + 1, module.len - head - 1), mains))
		return view_of(module.data, head);
	return module;
}

/* Its first word: "gunicorn: master [shop]", "puma 5.6.5 (tcp://...)", "[celeryd: ...]". */
static struct view title_name(struct view title)
{
	const uint8_t *slash;
	size_t n = 0;

	while (title.len && (title.data[0] == '[' || title.data[0] == ' '))
		title = view_of(title.data + 1, title.len - 1);
	while (n < title.len && title.data[n] != ' ' && title.data[n] != ':')
		n++;
	slash = n ? memrchr(title.data, '/', n) : NULL;
	if (slash && (size_t)(slash + 1 - title.data) < n)
		return view_of(slash + 1, n - (size_t)(slash + 1 - title.data));
	return n ? view_of(title.data, n) : title;
}

/* Managers of packages, by the file that node is told to run. */
static struct view runner_name(struct view name)
{
	static const struct {
		const char *file, *name;
	} runners[] = {{"npm-cli.js", "npm"},	   {"npx-cli.js", "npx"}, {"yarn.js", "yarn"},
		       {"yarn.cjs", "yarn"},	   {"pnpm.cjs", "pnpm"},  {"pnpm.js", "pnpm"},
		       {"corepack.js", "corepack"}};

	for (size_t i = 0; i < ARRAY_SIZE(runners); i++)
		if (view_eq(name, view_str(runners[i].file)))
			return view_str(runners[i].name);
	return name;
}

bool proc_cmdline_needs_cwd(const struct proc_cmdline *found)
{
	return found->kind == PROC_CMDLINE_FILE && found->what.len && found->what.data[0] != '/';
}

void proc_cmdline_name(const struct proc_cmdline *found, const char *cwd, char *dst, size_t cap)
{
	struct view name = found->what;

	switch (found->kind) {
	case PROC_CMDLINE_FILE:
		name = runner_name(without_packaging(file_name(name, cwd)));
		break;
	case PROC_CMDLINE_MODULE:
		name = module_name(name);
		break;
	case PROC_CMDLINE_CLASS:
		name = class_name(name);
		break;
	case PROC_CMDLINE_TITLE:
		name = title_name(name);
		break;
	}
	proc_text_copy(dst, cap, name.len ? name : found->what);
}
