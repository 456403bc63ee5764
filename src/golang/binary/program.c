/*
 * src/golang/binary/program.c: see program.h. The file is read like the memory of a process
 * (proc_mem_open_elf), so the code for Go's tables works on it unchanged.
 */
#include "golang/binary/program.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "golang/binary/program_state.h"
#include "golang/binary/vars.h"

/* Lookups are random, and many programs are open at once: 128 kB each. */
#define PROGRAM_WINDOW_BYTES ((size_t)4 << 10)
#define PROGRAM_WINDOWS 32
/*
 * Per address. The tables of the largest functions take a tenth of it; a forged one costs some 50
 * ms.
 */
#define PROGRAM_FRAMES_WORK ((uint64_t)1 << 22)

void golang_program_close(struct golang_program *program)
{
	if (!program)
		return;
	golang_module_release(&program->module);
	golang_mem_cache_release(&program->cache);
	golang_image_release(&program->image);
	proc_mem_close(program->mem);
	buf_release(&program->text);
	free(program);
}

/* Scanning every file on the machine is not worth the few Go programs without sections. */
static bool may_be_go(const struct elf_image *elf)
{
	static const char *const names[] = {".gopclntab", ".go.buildinfo", ".note.go.buildid",
					    ".data.rel.ro.gopclntab"};

	if (elf->n_sections == 0)
		return true;
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (elf_image_section(elf, names[i]))
			return true;
	return false;
}

static int program_open_memory(struct golang_program *p, int fd, bool relocated, struct err *err)
{
	struct proc_mem *mem;
	int r = proc_mem_open_elf(fd, relocated, &mem, err);

	if (r < 0)
		return r;
	golang_mem_cache_release(&p->cache);
	proc_mem_close(p->mem);
	p->mem = mem;
	golang_mem_cache_init(&p->cache, mem, PROGRAM_WINDOW_BYTES, PROGRAM_WINDOWS,
			      PROGRAM_WINDOWS);
	return 0;
}

static int program_layout(struct golang_program *p, struct golang_module *module, struct err *err)
{
	struct golang_version version;
	int r = golang_image_version(&p->image, p->mem, &version, err);

	if (r == -ENOENT || r == -EBADMSG)
		r = golang_vars_build_version(module, &version, err);
	if (r < 0)
		return r == -ENOENT || r == -EBADMSG
			       ? err_lack(err, -ENOTSUP, ERR_CAUSE_UNKNOWN_VERSION, "",
					  "a Go program without version information")
			       : r;
	r = golang_layout_for(version.minor, &p->layout, err);
	if (r == 0 && p->layout->pcln != module->tables.format)
		return err_lack(err, -ENOTSUP, ERR_CAUSE_UNKNOWN_VERSION, "",
				"the function table does not match Go 1.%u", version.minor);
	return r;
}

static int program_load(struct golang_program *p, struct err *err)
{
	struct golang_scan scan = golang_scan_of(p->mem);
	struct golang_module module = {0};
	uint64_t pclntab, addr = 0;
	const char *how;
	int r = golang_pclntab_find(&p->image, &scan, &pclntab, &how, err);

	if (r == 0)
		r = golang_module_find(&p->image, p->mem, pclntab, &addr, err);
	/* Field offsets depend on the version, which may have to be searched for. */
	if (r == 0)
		r = golang_module_load(&module, &p->cache, addr, NULL, err);
	if (r < 0)
		return r;
	r = program_layout(p, &module, err);
	golang_module_release(&module);
	if (r < 0)
		return r;
	return golang_module_load(&p->module, &p->cache, addr, p->layout, err);
}

static int program_open(struct golang_program *p, int fd, struct err *err)
{
	int r = elf_image_open_fd(fd, &p->image.elf, err);

	if (r < 0)
		return r;
	p->image.from_file = true;
	if (!may_be_go(p->image.elf))
		return err_lack(err, -ENOTSUP, ERR_CAUSE_NOT_GO, "", "not a Go program");
	r = program_open_memory(p, fd, true, err);
	if (r < 0)
		return r;
	r = program_load(p, err);
	if (r < 0)
		return r;
	/* Since 1.18 tables hold offsets, so relocations are no longer needed. */
	if (p->layout->pcln != GOLANG_PCLN_116)
		return program_open_memory(p, fd, false, err);
	return 0;
}

int golang_program_open(int fd, struct golang_program **ret_program, struct err *err)
{
	_cleanup_(golang_program_closep) struct golang_program *p = calloc(1, sizeof(*p));
	int r;

	if (!p)
		return err_oom(err);
	r = program_open(p, fd, err);
	/* Whatever is damaged: it is not a program we can read. */
	if (r == -EBADMSG || r == -ENOENT || r == -EFAULT || r == -E2BIG)
		return -ENOTSUP;
	if (r < 0)
		return r;
	*ret_program = TAKE_PTR(p);
	return 0;
}

/* The function the kernel returns to after a signal: entered without a call. */
static bool golang_program_is_sigreturn(struct golang_pclntab *t, const struct golang_func *f)
{
	struct view name = golang_pclntab_name(t, f->name);

	return view_eq(name, view_str("runtime.sigreturn")) ||
	       view_eq(name, view_str("runtime.sigreturn__sigaction"));
}

/* The function at pc; the byte before sigreturn counts as part of it, see unwind_rule.h. */
static bool func_at(struct golang_pclntab *t, uint64_t *pc, struct golang_func *ret_func)
{
	struct golang_func next;

	if (!golang_pclntab_func_at(t, *pc, ret_func))
		return false;
	if (*pc + 1 == ret_func->end && golang_pclntab_func_at(t, *pc + 1, &next) &&
	    golang_program_is_sigreturn(t, &next)) {
		*ret_func = next;
		++*pc;
	}
	return true;
}

/* The frames found at an address; names and files are offsets into the program's text. */
struct frames {
	struct golang_program_frame at[GOLANG_PROGRAM_MAX_FRAMES];
	size_t names[GOLANG_PROGRAM_MAX_FRAMES];
	size_t files[GOLANG_PROGRAM_MAX_FRAMES];
	int n;
};

static int frames_add(struct golang_program *p, struct frames *frames, const struct golang_func *f,
		      uint64_t pc, uint32_t name, int32_t start_line)
{
	struct golang_program_frame *frame = &frames->at[frames->n];
	int r;

	*frame = (struct golang_program_frame){.start_line = start_line};
	/* A name is valid until the next table lookup. */
	frame->name = golang_pclntab_name(&p->module.tables, name);
	frames->names[frames->n] = p->text.len;
	r = buf_append(&p->text, frame->name.data, frame->name.len);
	if (r < 0)
		return r;
	frame->file = golang_pclntab_file_line(&p->module.tables, f, pc, &frame->line);
	frames->files[frames->n] = p->text.len;
	r = buf_append(&p->text, frame->file.data, frame->file.len);
	frames->n++;
	return r;
}

/* Inlined calls innermost first, then the function itself, like runtime.CallersFrames. */
static int frames_find(struct golang_program *p, const struct golang_func *f, uint64_t pc,
		       struct frames *frames)
{
	struct golang_pclntab *t = &p->module.tables;
	struct golang_inlined in;

	while (frames->n < GOLANG_PROGRAM_MAX_FRAMES - 1) {
		int64_t index = golang_pclntab_inline_at(t, f, pc);
		int r;

		if (index < 0 || !golang_pclntab_inlined(t, f, index, &in))
			break;
		if (in.func_id != p->layout->id_wrapper || frames->n == 0) {
			r = frames_add(p, frames, f, pc, in.name, in.start_line);
			if (r < 0)
				return r;
		}
		pc = f->entry + (uint64_t)(int64_t)in.parent_pc;
	}
	/* Stacks omit wrappers, unless the wrapper is all there is: then it was running. */
	if (f->func_id == p->layout->id_wrapper && frames->n > 0)
		return 0;
	return frames_add(p, frames, f, pc, f->name, f->start_line);
}

int golang_program_frames(struct golang_program *p, uint64_t vaddr,
			  int (*emit)(void *context, const struct golang_program_frame *frame),
			  void *context, struct err *err)
{
	struct frames frames;
	struct golang_func f;
	int r = 0;

	frames.n = 0;
	buf_clear(&p->text);
	p->cache.work_left = PROGRAM_FRAMES_WORK;
	if (func_at(&p->module.tables, &vaddr, &f))
		r = frames_find(p, &f, vaddr, &frames);
	if (r < 0)
		return err_oom(err);
	if (golang_mem_cache_spent(&p->cache))
		return err_set(err, -E2BIG,
			       "Go's tables need more work to read than any real program's: they "
			       "are damaged or forged");
	for (int i = 0; r >= 0 && i < frames.n; i++) {
		struct golang_program_frame *frame = &frames.at[i];

		(void)view_sub(buf_view(&p->text), frames.names[i], frame->name.len, &frame->name);
		(void)view_sub(buf_view(&p->text), frames.files[i], frame->file.len, &frame->file);
		r = emit(context, frame);
	}
	return r < 0 ? r : frames.n;
}
