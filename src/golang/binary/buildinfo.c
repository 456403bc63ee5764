/* src/golang/binary/buildinfo.c: see buildinfo.h. */
#include "golang/binary/buildinfo.h"

#include <errno.h>

#include "base/cleanup.h"

#define BUILDINFO_MAGIC_LEN (sizeof(GOLANG_BUILDINFO_MAGIC) - 1)
#define BUILDINFO_INLINE_STRINGS 2
#define BUILDINFO_ALIGN 16
/* Forged data may be nothing but magics. */
#define BUILDINFO_MAX_TRIES 64

static int buildinfo_pointer_form(struct proc_mem *mem, uint64_t header_addr,
				  struct golang_version *ret_version, struct err *err)
{
	struct {
		uint64_t data;
		uint64_t len;
	} header;
	char text[128];
	int r;

	r = proc_mem_read(mem, header_addr, &header, sizeof(header), err);
	if (r < 0)
		return r;
	r = proc_mem_read(mem, header.data, text, MIN(header.len, sizeof(text)), err);
	if (r < 0)
		return r;
	if (!golang_version_parse(view_of(text, MIN(header.len, sizeof(text))), ret_version))
		return err_set(err, -EBADMSG, "Go build info has no Go version");
	return 0;
}

int golang_buildinfo_read(struct proc_mem *mem, uint64_t addr, struct golang_version *ret_version,
			  struct err *err)
{
	uint8_t bytes[256];
	struct view block, text;
	ssize_t n = proc_mem_read_some(mem, addr, bytes, sizeof(bytes));
	uint64_t len, pointer;
	size_t off = 32;

	if (n < 0)
		return err_set(err, (int)n, "cannot read Go build info at 0x%lx", addr);
	block = view_of(bytes, (size_t)n);
	if (block.len < 32 || memcmp(bytes, GOLANG_BUILDINFO_MAGIC, BUILDINFO_MAGIC_LEN) != 0)
		return err_set(err, -EBADMSG, "no Go build info at 0x%lx", addr);
	if (!(bytes[15] & BUILDINFO_INLINE_STRINGS)) {
		if (bytes[14] != 8 || (bytes[15] & 1) || !view_u64(block, 16, &pointer))
			return err_set(err, -EBADMSG, "Go build info is not 64-bit little-endian");
		return buildinfo_pointer_form(mem, pointer, ret_version, err);
	}
	if (!view_varint(block, &off, &len) ||
	    !view_sub(block, off, MIN(len, block.len - off), &text) ||
	    !golang_version_parse(text, ret_version))
		return err_set(err, -EBADMSG, "Go build info has no Go version");
	return 0;
}

/* Only a block that parses ends the scan; the magic alone may be a string constant. */
struct buildinfo_search {
	struct proc_mem *mem;
	struct golang_version *version;
	struct err *err;
	unsigned int tries;
};

static int buildinfo_try(uint64_t addr, struct view bytes, void *arg)
{
	struct buildinfo_search *search = arg;
	const uint8_t *p = bytes.data;
	const uint8_t *end = bytes.data + bytes.len;

	while ((p = memmem(p, (size_t)(end - p), GOLANG_BUILDINFO_MAGIC, BUILDINFO_MAGIC_LEN))) {
		uint64_t at = addr + (uint64_t)(p - bytes.data);

		if (at % BUILDINFO_ALIGN == 0 && search->tries++ < BUILDINFO_MAX_TRIES &&
		    golang_buildinfo_read(search->mem, at, search->version, search->err) == 0)
			return 1;
		p++;
	}
	return 0;
}

int golang_buildinfo_scan(struct golang_scan *scan, uint64_t addr, uint64_t len,
			  struct golang_version *ret_version, struct err *err)
{
	struct buildinfo_search search = {.mem = scan->mem, .version = ret_version, .err = err};
	int r = golang_scan(scan, addr, len, BUILDINFO_MAGIC_LEN, buildinfo_try, &search);

	if (r < 0)
		return err_set(err, r, "cannot scan for Go build info at 0x%lx", addr);
	return r > 0 ? 0 : err_set(err, -ENOENT, "no Go build info found");
}
