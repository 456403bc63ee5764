/* src/query/origin.c: see origin.h. */
#include "query/origin.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>

#include "base/cleanup.h"

#define KERNEL_MAPPING "[kernel.kallsyms]" /* as cpu/builder.c names it */

const char *query_kind_name(enum query_kind kind)
{
	static const char *const names[QUERY_KIND_N] = {
		[QUERY_KIND_OTHER] = "other",	  [QUERY_KIND_GO] = "go",
		[QUERY_KIND_JAVA] = "java",	  [QUERY_KIND_PYTHON] = "python",
		[QUERY_KIND_JS] = "js",		  [QUERY_KIND_NATIVE] = "native",
		[QUERY_KIND_RUNTIME] = "runtime", [QUERY_KIND_KERNEL] = "kernel",
		[QUERY_KIND_GROUP] = "group",
	};

	return names[kind];
}

/* The place after the last of this byte; 0 if there is none. */
static size_t after_last(struct view v, char c)
{
	size_t i = v.len;

	while (i > 0 && v.data[i - 1] != (uint8_t)c)
		i--;
	return i;
}

static size_t find_byte(struct view v, size_t from, char c)
{
	const uint8_t *found = from < v.len ? memchr(v.data + from, c, v.len - from) : NULL;

	return found ? (size_t)(found - v.data) : v.len;
}

static enum query_kind kind_of_file(struct view file)
{
	static const struct {
		const char *end;
		enum query_kind kind;
	} ends[] = {
		{".go", QUERY_KIND_GO},	     {".py", QUERY_KIND_PYTHON},
		{".java", QUERY_KIND_JAVA},  {".kt", QUERY_KIND_JAVA},
		{".scala", QUERY_KIND_JAVA}, {".groovy", QUERY_KIND_JAVA},
		{".clj", QUERY_KIND_JAVA},   {".js", QUERY_KIND_JS},
		{".mjs", QUERY_KIND_JS},     {".cjs", QUERY_KIND_JS},
		{".ts", QUERY_KIND_JS},
	};

	for (size_t i = 0; i < ARRAY_SIZE(ends); i++)
		if (view_ends_with(file, ends[i].end))
			return ends[i].kind;
	/* "<frozen importlib._bootstrap>", "<string>": code that Python has from elsewhere. */
	return view_starts_with(file, "<") ? QUERY_KIND_PYTHON : QUERY_KIND_OTHER;
}

/* The executables and libraries that run other languages. */
static bool is_runtime(struct view mapping)
{
	static const char *const programs[] = {"python", "ruby", "perl", "php", "lua"};
	static const char *const exact[] = {"node", "nodejs", "beam.smp", "deno", "bun"};
	static const char *const libraries[] = {"libpython", "libruby", "libperl",  "libphp",
						"libjvm.",   "libjli.", "libjava.", "liblua",
						"libnode.",  "libmono"};
	size_t n;

	for (size_t i = 0; i < ARRAY_SIZE(exact); i++)
		if (view_eq(mapping, view_str(exact[i])))
			return true;
	for (size_t i = 0; i < ARRAY_SIZE(libraries); i++)
		if (view_starts_with(mapping, libraries[i]))
			return true;
	/* "python3.11", but not "python-helper". */
	for (size_t i = 0; i < ARRAY_SIZE(programs); i++) {
		if (!view_starts_with(mapping, programs[i]))
			continue;
		n = strlen(programs[i]);
		while (n < mapping.len && (isdigit(mapping.data[n]) || mapping.data[n] == '.'))
			n++;
		if (n == mapping.len)
			return true;
	}
	return false;
}

/* "com.shop.Cart.add", as perf maps have it: dotted words, and one of them begins as classes do. */
static bool is_java_name(struct view name)
{
	bool class = false;
	size_t start = 0, dots = 0;

	for (size_t i = 0; i <= name.len; i++) {
		uint8_t c = i < name.len ? name.data[i] : '.';

		if (c == '.') {
			if (i == start)
				return false;
			class |= i < name.len && isupper(name.data[start]);
			dots += i < name.len;
			start = i + 1;
		} else if (!isalnum(c) && !strchr("_$<>/+", c) && c < 0x80) {
			return false;
		}
	}
	return dots > 0 && class;
}

static bool is_js_name(struct view name)
{
	return view_starts_with(name, "JS:") || view_starts_with(name, "LazyCompile:") ||
	       view_starts_with(name, "Function:");
}

/* "[no unwind information]", "(other)", "<unknown>"; but not "[libfoo.so+0x1230]" or "<module>". */
static bool is_remark(struct view name)
{
	return name.len == 0 || name.data[0] == '[' || name.data[0] == '(' ||
	       view_eq(name, view_str("<unknown>"));
}

enum query_kind query_kind_of(struct view name, struct view file, struct view mapping)
{
	enum query_kind kind;

	if (view_eq(mapping, view_str(KERNEL_MAPPING)) || view_eq(name, view_str("[kernel]")))
		return QUERY_KIND_KERNEL;
	if (file.len) {
		kind = kind_of_file(file);
		if (kind != QUERY_KIND_OTHER)
			return kind;
		/* Go's own assembler; names of others have no package before a dot. */
		if (view_ends_with(file, ".s") && find_byte(name, 0, '.') < name.len)
			return QUERY_KIND_GO;
	}
	if (mapping.len)
		return is_runtime(mapping) ? QUERY_KIND_RUNTIME : QUERY_KIND_NATIVE;
	if (is_remark(name))
		return QUERY_KIND_OTHER;
	if (is_js_name(name))
		return QUERY_KIND_JS;
	if (!file.len && is_java_name(name))
		return QUERY_KIND_JAVA;
	return QUERY_KIND_NATIVE;
}

/* "github.com/a/b.(*T).M" is of "github.com/a/b"; type arguments may have paths of their own. */
static struct view go_package(struct view name)
{
	struct view head = view_of(name.data, find_byte(name, 0, '['));
	size_t dot = find_byte(head, after_last(head, '/'), '.');

	return view_of(name.data, dot);
}

/* All but the class and the method; a class without a package is its own. */
static struct view java_package(struct view name)
{
	struct view head = view_of(name.data, find_byte(name, 0, '('));
	size_t method = after_last(head, '.'), class;

	if (method == 0)
		return view_str("");
	class = after_last(view_of(name.data, method - 1), '.');
	return view_of(name.data, class > 0 ? class - 1 : method - 1);
}

/* Where the path of a package begins: behind "site-packages/", "lib/python3.11/"; 0: nowhere. */
static size_t package_start(struct view file)
{
	static const char *const roots[] = {"/site-packages/", "/dist-packages/", "/node_modules/",
					    "/lib/python"};
	const uint8_t *found;
	size_t start;

	for (size_t i = 0; i < ARRAY_SIZE(roots); i++) {
		found = memmem(file.data, file.len, roots[i], strlen(roots[i]));
		if (!found)
			continue;
		start = (size_t)(found - file.data) + strlen(roots[i]);
		if (file.data[start - 1] == '/')
			return start;
		start = find_byte(file, start, '/');
		return start < file.len ? start + 1 : 0;
	}
	return 0;
}

/* "json" for json/decoder.py of the standard library or a package; else the script's own name. */
static struct view script_module(struct view file)
{
	size_t start = package_start(file), slash;
	struct view module;

	if (start == 0)
		start = after_last(file, '/');
	module = view_of(file.data + start, find_byte(file, start, '/') - start);
	if (view_ends_with(module, ".py"))
		module.len -= 3;
	if (!view_eq(module, view_str("__init__")) || start < 2)
		return module;
	slash = after_last(view_of(file.data, start - 1), '/');
	return view_of(file.data + slash, start - 1 - slash);
}

/* "nf_hook_slow [nf_tables]" is of nf_tables. */
static struct view kernel_module(struct view name)
{
	size_t open = after_last(name, '[');

	if (open < 2 || name.data[name.len - 1] != ']' || name.data[open - 2] != ' ')
		return view_str("kernel");
	return view_of(name.data + open, name.len - 1 - open);
}

struct view query_module_of(enum query_kind kind, struct view name, struct view file,
			    struct view mapping)
{
	switch (kind) {
	case QUERY_KIND_GO:
		return go_package(name);
	case QUERY_KIND_JAVA:
		return java_package(name);
	case QUERY_KIND_PYTHON:
	case QUERY_KIND_JS:
		return script_module(file);
	case QUERY_KIND_KERNEL:
		return kernel_module(name);
	case QUERY_KIND_GROUP:
		return view_str("");
	default:
		return mapping;
	}
}

void query_origins_release(struct query_origins *o)
{
	intern_release(&o->texts);
	map_release(&o->file_of);
	map_release(&o->mapping_of);
	map_release(&o->variants_of);
	*o = (struct query_origins){0};
}

static int origins_put(struct query_origins *o, struct map *of, uint32_t name, struct view text)
{
	uint64_t known;
	uint32_t id;
	int r;

	if (text.len == 0 || map_get(of, name, &known))
		return 0;
	r = intern_add(&o->texts, text, &id);
	return r < 0 ? r : map_put(of, name, id);
}

/* Whether a list of suffixes has this one, or no room for it. */
static bool variants_are_complete(struct view list, struct view suffix)
{
	size_t n = 0;

	for (size_t at = 0; at < list.len; n++) {
		size_t end = find_byte(list, at, 0);

		if (view_eq(view_of(list.data + at, end - at), suffix))
			return true;
		at = end + 1;
	}
	return n >= QUERY_VARIANTS_MAX;
}

/* What the name of a function has beyond the one that it goes by. */
static int origins_put_variant(struct query_origins *o, uint32_t name, struct view full, size_t len)
{
	struct view list = query_origins_variants(o, name),
		    suffix = view_of(full.data + len, full.len - len);
	_cleanup_(buf_release) struct buf longer = {0};
	uint32_t id;

	if (variants_are_complete(list, suffix))
		return 0;
	if (buf_append(&longer, list.data, list.len) < 0 ||
	    buf_append(&longer, suffix.data, suffix.len) < 0 || buf_append_byte(&longer, 0) < 0 ||
	    intern_add(&o->texts, buf_view(&longer), &id) < 0)
		return -ENOMEM;
	return map_put(&o->variants_of, name, id);
}

int query_origins_add(struct query_origins *o, const struct intern *names,
		      const struct profile_frames *frames)
{
	const struct profile *p = frames->profile;
	int r = 0;

	for (size_t i = 0; r == 0 && i < profile_n_locations(p); i++) {
		const struct profile_location *l = profile_location_at(p, i);

		for (uint32_t k = 0; r == 0 && k < l->n_lines; k++) {
			const struct profile_function *f =
				profile_function_at(p, l->lines[k].function);
			uint32_t string = profile_frames_name(frames, l, k), name;

			if (!intern_find(names, profile_string(p, string), &name))
				continue;
			if (f->name != 0 && f->name != string)
				r = origins_put_variant(o, name, profile_string(p, f->name),
							profile_string(p, string).len);
			if (r < 0)
				return r;
			r = origins_put(o, &o->file_of, name, profile_string(p, f->file));
			if (r == 0)
				r = origins_put(o, &o->mapping_of, name,
						profile_module(p, l->mapping));
		}
	}
	return r;
}

static struct view origins_get(const struct query_origins *o, const struct map *of, uint32_t name)
{
	uint64_t text;

	return map_get(of, name, &text) ? intern_get(&o->texts, (uint32_t)text) : view_str("");
}

struct view query_origins_file(const struct query_origins *o, uint32_t name)
{
	return origins_get(o, &o->file_of, name);
}

struct view query_origins_mapping(const struct query_origins *o, uint32_t name)
{
	return origins_get(o, &o->mapping_of, name);
}

struct view query_origins_variants(const struct query_origins *o, uint32_t name)
{
	return origins_get(o, &o->variants_of, name);
}
