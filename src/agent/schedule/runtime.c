/*
 * src/agent/schedule/runtime.c: the language runtime of a process, for people: "Go 1.27", "Python
 * 3.11", "native".
 *
 * Only what is known: without a version there is none, and what no source could look into is not
 * called native.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/state.h"
#include "base/cleanup.h"
#include "proc/maps.h"

/* By the name of the executable up to a version, or of a library that it has mapped. */
static const struct language {
	const char *file;
	const char *name;
	const char *libraries[2]; /* up to the version */
} languages[] = {
	{"python", "Python", {"libpython"}},
	{"pypy", "PyPy", {}},
	{"nodejs", "Node", {"libnode.so."}},
	{"node", "Node", {"libnode.so."}},
	{"ruby", "Ruby", {"libruby-", "libruby.so."}},
	{"php-fpm", "PHP", {"libphp"}},
	{"php-cgi", "PHP", {"libphp"}},
	{"php", "PHP", {"libphp"}},
	{"perl", "Perl", {"libperl.so."}},
};

/* NODE_MODULE_VERSION, by which its library is called (nodejs.org, doc/abi_version_registry). */
static const struct {
	unsigned int abi, major;
} node_abis[] = {{83, 14}, {93, 16}, {108, 18}, {115, 20}, {127, 22}, {137, 24}};

static const char *base_of(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* "3.11" of "3.11.so.1.0": two numbers at most. Returns its length; 0 if it is none. */
static size_t version_length(const char *text, size_t *ret_numbers)
{
	size_t n = strspn(text, "0123456789"), more = 0;

	*ret_numbers = n > 0;
	if (n && text[n] == '.')
		more = strspn(text + n + 1, "0123456789");
	*ret_numbers += more > 0;
	return more ? n + 1 + more : n;
}

static const struct language *language_of(const char *exe, const char **ret_version)
{
	const char *base = base_of(exe);

	for (size_t i = 0; i < ARRAY_SIZE(languages); i++) {
		size_t n = strlen(languages[i].file);

		if (strncmp(base, languages[i].file, n) != 0 ||
		    base[n + strspn(base + n, "0123456789.-")] != 0)
			continue;
		*ret_version = base + n;
		return &languages[i];
	}
	return NULL;
}

/* "20" of /root/.nvm/versions/node/v20.11.0/bin/node, "3.1" of /opt/ruby-3.1.2/bin/ruby. */
static const char *version_in_path(const char *exe)
{
	size_t numbers;

	for (const char *at = exe; (at = strchr(at, '/')); at++) {
		const char *version = at + 1;

		version += strcspn(version, "/0123456789");
		if (version_length(version, &numbers) && numbers == 2 &&
		    (version == at + 1 || version[-1] == 'v' || version[-1] == '-'))
			return version;
	}
	return NULL;
}

static const char *version_in_maps(const struct language *l, const struct proc_maps *maps)
{
	for (size_t i = 0; i < maps->len; i++) {
		const char *base = base_of(maps->maps[i].path);

		for (size_t k = 0; k < ARRAY_SIZE(l->libraries) && l->libraries[k]; k++)
			if (strncmp(base, l->libraries[k], strlen(l->libraries[k])) == 0)
				return base + strlen(l->libraries[k]);
	}
	return NULL;
}

static unsigned int node_major(const char *abi)
{
	unsigned long number = strtoul(abi, NULL, 10);

	for (size_t i = 0; i < ARRAY_SIZE(node_abis); i++)
		if (node_abis[i].abi == number)
			return node_abis[i].major;
	return 0;
}

static void describe(const char *name, const char *version, char *dst, size_t cap)
{
	size_t numbers = 0, n = version ? version_length(version, &numbers) : 0;

	/* Of these the first number is the release. */
	if (n && (strcmp(name, "Node") == 0 || strcmp(name, "Java") == 0))
		n = strspn(version, "0123456789");
	(void)snprintf(dst, cap, "%s%s%.*s", name, n ? " " : "", (int)n, n ? version : "");
}

static void describe_language(const struct language *l, const char *version, const char *exe,
			      const struct proc_maps *maps, char *dst, size_t cap)
{
	const char *mapped = maps ? version_in_maps(l, maps) : NULL, *in_path;
	bool is_node = strcmp(l->name, "Node") == 0;
	size_t numbers;
	char major[16];

	if (version_length(version, &numbers) && (numbers == 2 || is_node)) {
		describe(l->name, version, dst, cap);
		return;
	}
	if (mapped && is_node) {
		(void)snprintf(major, sizeof(major), "%u", node_major(mapped));
		mapped = node_major(mapped) ? major : NULL;
	}
	in_path = mapped ? mapped : version_in_path(exe);
	describe(l->name, in_path ? in_path : version, dst, cap);
}

/* "1.8.0_462" is Java 8. */
static void describe_java(const char *version, char *dst, size_t cap)
{
	describe("Java", strncmp(version, "1.", 2) == 0 ? version + 2 : version, dst, cap);
}

void agent_runtime_describe(const char *runtime, const char *exe, bool is_native,
			    const struct proc_maps *maps, char *dst, size_t cap)
{
	const char *version = "";
	const struct language *l = language_of(exe, &version);

	dst[0] = 0;
	if (strncmp(runtime, "go1.", 4) == 0)
		describe("Go", runtime + 2, dst, cap);
	else if (strncmp(runtime, "java", 4) == 0)
		describe_java(runtime[4] == ' ' ? runtime + 5 : "", dst, cap);
	else if (l)
		describe_language(l, version, exe, maps, dst, cap);
	else if (is_native)
		(void)snprintf(dst, cap, "native");
}

bool agent_runtime_needs_maps(const char *exe)
{
	const char *version = "";
	const struct language *l = language_of(exe, &version);
	size_t numbers = 0;

	if (!l || !l->libraries[0])
		return false;
	(void)version_length(version, &numbers);
	return numbers < 2 && !version_in_path(exe);
}
