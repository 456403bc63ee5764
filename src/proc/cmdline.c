/*
 * src/proc/cmdline.c: see cmdline.h. Finds what an interpreter runs: the first argument that is
 * neither an option nor the value of one. Names are made of it in program.c.
 */
#include "proc/cmdline.h"

#include <string.h>

#include "base/cleanup.h"

/* An interpreter, and those of its options that matter for finding what it runs. */
struct interpreter {
	const char *name;  /* its file, up to a version */
	const char *code;  /* letters of options whose value is code */
	const char *value; /* those with a value, attached or in the next argument */
	const char *rest;  /* those with an attached value, or none */
	char script;	   /* the one whose value is the script; 0: none */
	char module;	   /* or a module */
	/* Long options; NULL-terminated. */
	const char *const *long_code;
	const char *const *long_value; /* the value may be in the next argument */
};

static const char *const none[] = {NULL};
static const char *const python_value[] = {"--check-hash-based-pycs", NULL};
static const char *const node_code[] = {"--eval", "--print", "--test", NULL};
static const char *const node_value[] = {"--require",
					 "--import",
					 "--loader",
					 "--experimental-loader",
					 "--conditions",
					 "--env-file",
					 "--inspect-port",
					 "--title",
					 "--icu-data-dir",
					 "--openssl-config",
					 "--redirect-warnings",
					 "--diagnostic-dir",
					 "--trace-event-categories",
					 "--max-http-header-size",
					 "--stack-trace-limit",
					 "--unhandled-rejections",
					 "--dns-result-order",
					 "--experimental-config-file",
					 NULL};
static const char *const ruby_value[] = {"--encoding", "--external-encoding", "--internal-encoding",
					 "--enable",   "--disable",	      "--backtrace-limit",
					 NULL};
static const char *const php_code[] = {"--run", "--process-code", "--process-begin",
				       "--process-end", NULL};
static const char *const php_value[] = {"--php-ini", "--define",	 "--docroot",
					"--server",  "--zend-extension", NULL};
static const char *const shell_value[] = {"--rcfile", "--init-file", NULL};
static const char *const dotnet_value[] = {"--fx-version",
					   "--roll-forward",
					   "--additionalprobingpath",
					   "--additional-deps",
					   "--depsfile",
					   "--runtimeconfig",
					   NULL};

static const struct interpreter interpreters[] = {
	{"python", "c", "WXQ", "", 0, 'm', none, python_value},
	{"pypy", "c", "WX", "", 0, 'm', none, none},
	{"nodejs", "ep", "rC", "", 0, 0, node_code, node_value},
	{"node", "ep", "rC", "", 0, 0, node_code, node_value},
	{"ruby", "e", "IrCE", "0FKTWixl", 0, 0, none, ruby_value},
	{"php", "rBRE", "cdtSzF", "", 'f', 0, php_code, php_value},
	{"perl", "eE", "I", "0CDFMVdilmx", 0, 0, none, none},
	{"bash", "cs", "oO", "", 0, 0, none, shell_value},
	{"dash", "cs", "o", "", 0, 0, none, none},
	{"zsh", "cs", "o", "", 0, 0, none, none},
	{"ksh", "cs", "o", "", 0, 0, none, none},
	{"ash", "cs", "o", "", 0, 0, none, none},
	{"sh", "cs", "o", "", 0, 0, none, none},
	{"dotnet", "", "", "", 0, 0, none, dotnet_value},
};

/* Options of java(1) with their value in the next argument. */
static const char *const java_value[] = {"-cp",
					 "-classpath",
					 "--class-path",
					 "-p",
					 "--module-path",
					 "--upgrade-module-path",
					 "--add-modules",
					 "--limit-modules",
					 "--add-exports",
					 "--add-opens",
					 "--add-reads",
					 "--patch-module",
					 "--enable-native-access",
					 "--illegal-native-access",
					 "--source",
					 NULL};

bool proc_cmdline_next(struct view args, size_t *at, struct view *ret_arg)
{
	const uint8_t *end;

	if (*at >= args.len)
		return false;
	end = memchr(args.data + *at, 0, args.len - *at);
	*ret_arg = view_of(args.data + *at, (end ? (size_t)(end - args.data) : args.len) - *at);
	*at += ret_arg->len + 1;
	return true;
}

static bool is_among(struct view word, const char *const *list)
{
	while (*list && !view_eq(word, view_str(*list)))
		list++;
	return *list;
}

static bool has_letter(const char *letters, uint8_t c)
{
	return c && strchr(letters, c);
}

static struct view base_of(struct view path)
{
	const uint8_t *slash = path.len ? memrchr(path.data, '/', path.len) : NULL;
	size_t skip = slash ? (size_t)(slash - path.data) + 1 : 0;

	return view_of(path.data + skip, path.len - skip);
}

/* "python3.11" is python, "node_exporter" is not node. */
static bool is_version(struct view rest)
{
	static const char debug[] = "-dbg";

	if (rest.len >= 4 && memcmp(rest.data + rest.len - 4, debug, 4) == 0)
		rest.len -= 4;
	for (size_t i = 0; i < rest.len; i++)
		if (rest.data[i] != '.' && rest.data[i] != '-' &&
		    (rest.data[i] < '0' || rest.data[i] > '9'))
			return false;
	return true;
}

static bool is_called(struct view file, const char *name)
{
	size_t n = strlen(name);

	return view_starts_with(file, name) && is_version(view_of(file.data + n, file.len - n));
}

static const struct interpreter *interpreter_find(struct view file)
{
	for (size_t i = 0; i < ARRAY_SIZE(interpreters); i++)
		if (is_called(file, interpreters[i].name))
			return &interpreters[i];
	return NULL;
}

/* What follows an argument on the command line. */
enum option {
	OPTION_ALONE,
	OPTION_HAS_VALUE, /* the next argument is its value, */
	OPTION_IS_SCRIPT, /* or what is run; or this one is, from `value` on */
	OPTION_IS_MODULE,
	OPTION_IS_CODE,
};

/* "-uWignore": a letter each, up to one that takes a value. */
static enum option letters_read(const struct interpreter *in, struct view arg, struct view *value)
{
	for (size_t i = 1; i < arg.len; i++) {
		uint8_t c = arg.data[i];

		*value = view_of(arg.data + i + 1, arg.len - i - 1);
		if (has_letter(in->code, c))
			return OPTION_IS_CODE;
		if (in->script && c == (uint8_t)in->script)
			return OPTION_IS_SCRIPT;
		if (in->module && c == (uint8_t)in->module)
			return OPTION_IS_MODULE;
		if (has_letter(in->rest, c))
			break;
		if (has_letter(in->value, c))
			return value->len ? OPTION_ALONE : OPTION_HAS_VALUE;
	}
	return OPTION_ALONE;
}

static enum option option_read(const struct interpreter *in, struct view arg, struct view *value)
{
	if (!view_starts_with(arg, "--"))
		return letters_read(in, arg, value);
	if (is_among(arg, in->long_code))
		return OPTION_IS_CODE;
	return is_among(arg, in->long_value) ? OPTION_HAS_VALUE : OPTION_ALONE;
}

static bool is_option(struct view arg)
{
	return arg.len && (arg.data[0] == '-' || (arg.data[0] == '+' && arg.len > 1));
}

/* Takes what is run from the next argument. */
static bool found_next(struct view args, size_t at, int kind, struct proc_cmdline *ret)
{
	ret->kind = kind;
	return proc_cmdline_next(args, &at, &ret->what) && ret->what.len > 0;
}

static bool found_value(struct view value, struct view args, size_t at, int kind,
			struct proc_cmdline *ret)
{
	if (!value.len)
		return found_next(args, at, kind, ret);
	*ret = (struct proc_cmdline){.kind = kind, .what = value};
	return true;
}

/* "bash /dev/fd/3": an open file, whose name is nowhere. */
static bool is_descriptor(struct view path)
{
	return view_starts_with(path, "/dev/fd/") || view_starts_with(path, "/proc/") ||
	       view_eq(path, view_str("/dev/stdin"));
}

static bool interpreter_runs(const struct interpreter *in, struct view args, size_t at,
			     struct proc_cmdline *ret)
{
	struct view arg, value = {0};

	while (proc_cmdline_next(args, &at, &arg)) {
		if (!is_option(arg)) {
			*ret = (struct proc_cmdline){.kind = PROC_CMDLINE_FILE, .what = arg};
			return arg.len > 0 && !is_descriptor(arg);
		}
		if (view_eq(arg, view_str("-")))
			return false;
		if (view_eq(arg, view_str("--")))
			return found_next(args, at, PROC_CMDLINE_FILE, ret);
		switch (option_read(in, arg, &value)) {
		case OPTION_IS_CODE:
			return false;
		case OPTION_IS_SCRIPT:
			return found_value(value, args, at, PROC_CMDLINE_FILE, ret);
		case OPTION_IS_MODULE:
			return found_value(value, args, at, PROC_CMDLINE_MODULE, ret);
		case OPTION_HAS_VALUE:
			(void)proc_cmdline_next(args, &at, &arg);
			break;
		default:
			break;
		}
	}
	return false;
}

/* "shop/com.acme.Main" of --module: the class, or else the module. */
static bool java_module(struct view module, struct proc_cmdline *ret)
{
	const uint8_t *slash = module.len ? memchr(module.data, '/', module.len) : NULL;

	ret->kind = slash ? PROC_CMDLINE_CLASS : PROC_CMDLINE_MODULE;
	ret->what =
		slash ? view_of(slash + 1, module.len - (size_t)(slash + 1 - module.data)) : module;
	return ret->what.len > 0;
}

static bool java_runs(struct view args, size_t at, struct proc_cmdline *ret)
{
	static const char module_is[] = "--module=";
	struct view arg;

	while (proc_cmdline_next(args, &at, &arg)) {
		if (view_eq(arg, view_str("-jar")))
			return found_next(args, at, PROC_CMDLINE_FILE, ret);
		if (view_eq(arg, view_str("-m")) || view_eq(arg, view_str("--module")))
			return proc_cmdline_next(args, &at, &arg) && java_module(arg, ret);
		if (view_starts_with(arg, module_is))
			return java_module(view_of(arg.data + sizeof(module_is) - 1,
						   arg.len - sizeof(module_is) + 1),
					   ret);
		if (is_among(arg, java_value))
			(void)proc_cmdline_next(args, &at, &arg);
		/* A file of arguments (@FILE) may hold more of them, class included. */
		else if (arg.len && arg.data[0] != '-' && arg.data[0] != '@') {
			*ret = (struct proc_cmdline){.kind = PROC_CMDLINE_CLASS, .what = arg};
			return true;
		}
	}
	return false;
}

/* Whether the process has put a title in the place of its arguments. */
static bool is_title(struct view first, struct view args, size_t at)
{
	struct view arg;

	while (proc_cmdline_next(args, &at, &arg))
		if (arg.len)
			return false;
	return first.len > 0;
}

/* The shells of login sessions have a dash before their name. */
static struct view applet_of(struct view first)
{
	struct view base = base_of(first);

	return base.len && base.data[0] == '-' ? view_of(base.data + 1, base.len - 1) : base;
}

bool proc_cmdline_find(struct view args, const char *exe, struct proc_cmdline *ret)
{
	const struct interpreter *in;
	struct proc_cmdline found;
	struct view first, file;
	size_t at = 0;
	bool is_java;

	if (!proc_cmdline_next(args, &at, &first))
		return false;
	file = exe[0] ? base_of(view_str(exe)) : applet_of(first);
	/* One file for many programs: which one is in the first argument. */
	if (view_eq(file, view_str("busybox"))) {
		file = applet_of(first);
		if (!interpreter_find(file)) {
			*ret = (struct proc_cmdline){.kind = PROC_CMDLINE_TITLE, .what = first};
			return file.len > 0;
		}
	}
	/* "php-fpm: pool www", before it says so as well. */
	if (view_starts_with(file, "php-fpm")) {
		*ret = (struct proc_cmdline){.kind = PROC_CMDLINE_TITLE,
					     .what = view_str("php-fpm")};
		return true;
	}
	is_java = view_eq(file, view_str("java"));
	in = interpreter_find(file);
	if (!in && !is_java)
		return false;
	file = applet_of(first);
	if (!is_java && !interpreter_find(file) && is_title(first, args, at)) {
		*ret = (struct proc_cmdline){.kind = PROC_CMDLINE_TITLE, .what = first};
		return true;
	}
	if (!(is_java ? java_runs(args, at, &found) : interpreter_runs(in, args, at, &found)))
		return false;
	*ret = found;
	return true;
}
