/* src/golang/process.c: see process.h. */
#include "golang/process.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "golang/process_state.h"

/* Table lookups are random: small windows, up to 2 MB in all. */
#define TABLE_WINDOW_BYTES ((size_t)8 << 10)
#define TABLE_WINDOWS 128

void golang_process_close(struct golang_process *process)
{
	if (!process)
		return;
	for (size_t i = 0; i < process->n_modules; i++)
		golang_module_release(&process->modules[i]);
	free(process->modules);
	golang_mem_cache_release(&process->cache);
	golang_image_release(&process->image);
	proc_mem_close(process->mem);
	free(process);
}

static int assumed_layout(const char *release, const struct golang_layout **ret_layout,
			  struct err *err)
{
	struct golang_version version;

	if (golang_version_parse(view_str(release), &version) &&
	    golang_layout_for(version.minor, ret_layout, NULL) == 0)
		return 0;
	return err_set(err, -EINVAL,
		       "--assume-layout must be a release from 1.%d to 1.%d, not '%s'",
		       GOLANG_OLDEST_MINOR, GOLANG_NEWEST_MINOR, release);
}

int golang_process_check_layout(const char *assume_layout, struct err *err)
{
	const struct golang_layout *layout;

	return assumed_layout(assume_layout, &layout, err);
}

/* Build info first, then the runtime's own version, which needs a readable module. */
static int process_version(struct golang_process *p, struct golang_module *module,
			   const struct golang_options *options, struct err *err)
{
	int r = golang_image_version(&p->image, p->mem, &p->version, err);

	p->facts.version_how = "build info";
	if (r == -ENOENT || r == -EBADMSG) {
		r = golang_vars_build_version(module, &p->version, err);
		p->facts.version_how = "runtime.buildVersion";
	}
	if (options->assume_layout) {
		if (r < 0)
			(void)snprintf(p->version.text, sizeof(p->version.text), "go?");
		p->facts.version_how = "--assume-layout";
		return assumed_layout(options->assume_layout, &p->layout, err);
	}
	if (r == -ENOENT) {
		err_write(err, "a Go program without version information");
		err_write_remedy(err, ERR_CAUSE_UNKNOWN_VERSION,
				 "use --assume-layout 1.%d (or another release) to try that "
				 "release's layout",
				 GOLANG_NEWEST_MINOR);
		return -ENOTSUP;
	}
	return r < 0 ? r : golang_layout_for(p->version.minor, &p->layout, err);
}

static int process_add_module(struct golang_process *p, uint64_t addr, struct err *err)
{
	struct golang_module *modules =
		realloc(p->modules, (p->n_modules + 1) * sizeof(*p->modules));
	int r;

	if (!modules)
		return err_oom(err);
	p->modules = modules;
	r = golang_module_load(&modules[p->n_modules], &p->cache, addr, p->layout, err);
	if (r == 0)
		p->n_modules++;
	return r;
}

int golang_process_refresh(struct golang_process *p, struct err *err)
{
	size_t before = p->n_modules;
	uint64_t next = 0;

	while (p->n_modules < GOLANG_MAX_MODULES) {
		if (golang_module_next(&p->modules[p->n_modules - 1], p->mem, p->layout, &next) <
			    0 ||
		    next == 0)
			break;
		/* A plugin being added may not be readable yet; it will be next time. */
		if (process_add_module(p, next, err) < 0)
			break;
	}
	return (int)(p->n_modules - before);
}

static int process_modules(struct golang_process *p, const struct golang_options *options,
			   struct err *err)
{
	struct golang_scan scan = golang_scan_of(p->mem);
	struct golang_module module;
	uint64_t pclntab, addr;
	int r;

	r = golang_pclntab_find(&p->image, &scan, &pclntab, &p->facts.tables_how, err);
	if (r < 0)
		return r == -ENOENT ? -ENOTSUP : r;
	r = golang_module_find(&p->image, p->mem, pclntab, &addr, err);
	if (r < 0)
		return r;
	r = golang_module_load(&module, &p->cache, addr, NULL, err);
	if (r < 0)
		return r;
	r = process_version(p, &module, options, err);
	if (r == 0 && p->layout->pcln != module.tables.format)
		r = err_lack(err, -ENOTSUP, ERR_CAUSE_UNKNOWN_VERSION,
			     "use --assume-layout VERSION to try another release's layout",
			     "the function table does not match Go 1.%u (%s)", p->layout->minor,
			     p->facts.version_how);
	golang_module_release(&module);
	if (r < 0)
		return r;
	r = process_add_module(p, addr, err);
	if (r < 0)
		return r;
	(void)golang_process_refresh(p, NULL);
	return 0;
}

static int process_open(struct golang_process *p, const struct golang_options *options,
			struct err *err)
{
	int r;

	r = golang_image_find(p->mem, options->exe_path, GOLANG_SEARCH, &p->image, err);
	if (r < 0)
		return r;
	r = golang_image_back(&p->image, p->mem, err);
	if (r < 0)
		return r;
	golang_mem_cache_init(&p->cache, p->mem, TABLE_WINDOW_BYTES, TABLE_WINDOWS, TABLE_WINDOWS);
	r = process_modules(p, options, err);
	if (r < 0)
		return r;
	p->facts.version = p->version.text;
	p->facts.module_path = p->image.path;
	p->facts.n_functions = p->modules[0].tables.n_functions;
	p->facts.load_bias = p->image.bias;
	r = golang_vars_find(&p->image, &p->modules[0], p->layout, options->ignore_symbols,
			     &p->vars, &p->heap_refusal);
	if (r == -ESRCH || r == -ENOMEM)
		return err_pass(err, r, &p->heap_refusal);
	p->facts.has_heap = r == 0;
	p->facts.variables_how = p->vars.how ? p->vars.how : "not found";
	p->facts.heap_refusal = &p->heap_refusal;
	return 0;
}

int golang_process_why(struct golang_process *p, int code, struct err *err)
{
	struct err gone = {0};

	if (code == -ENOMEM || proc_mem_check(p->mem, 0, NULL, 0, &gone) != -ESRCH)
		return code;
	return err_pass(err, -ESRCH, &gone);
}

int golang_process_open_take(struct proc_mem *mem, const struct golang_options *options,
			     struct golang_process **ret_process, struct err *err)
{
	static const struct golang_options none = {0};
	_cleanup_(golang_process_closep) struct golang_process *p = calloc(1, sizeof(*p));
	struct err why = {0};
	int r;

	if (!p) {
		proc_mem_close(mem);
		return err_oom(err);
	}
	p->mem = mem;
	r = process_open(p, options ? options : &none, &why);
	/* Whichever read failed, or found an odd program: it may be another one by now. */
	if (r < 0)
		r = golang_process_why(p, r, &why);
	if (r < 0)
		return err_pass(err, r, &why);
	*ret_process = TAKE_PTR(p);
	return 0;
}

const struct golang_facts *golang_process_facts(const struct golang_process *process)
{
	return &process->facts;
}

struct proc_mem *golang_process_mem(const struct golang_process *process)
{
	return process->mem;
}

void golang_process_trim(struct golang_process *process)
{
	golang_mem_cache_release(&process->cache);
}

bool golang_process_func_at(struct golang_process *p, uint64_t pc,
			    struct golang_pclntab **ret_tables, struct golang_func *ret_func)
{
	for (size_t i = 0; i < p->n_modules; i++) {
		if (golang_pclntab_func_at(&p->modules[i].tables, pc, ret_func)) {
			*ret_tables = &p->modules[i].tables;
			return true;
		}
	}
	return false;
}

int golang_detect(struct proc_mem *mem, char *version, size_t version_len, struct err *err)
{
	struct golang_image image = {0};
	struct golang_version found = {.text = "go"};
	struct err why = {0};
	int r = golang_image_find(mem, NULL, GOLANG_GLANCE, &image, &why);

	if (r == -ENOTSUP && why.cause == ERR_CAUSE_NOT_GO)
		return 0;
	if (r < 0)
		return err_pass(err, r, &why);
	/*
	 * Without build info, finding the version needs a search, too expensive for a list of
	 * processes.
	 */
	(void)golang_image_version(&image, mem, &found, NULL);
	(void)snprintf(version, version_len, "%s", found.text);
	golang_image_release(&image);
	return 1;
}
