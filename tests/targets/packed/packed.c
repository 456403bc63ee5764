/*
 * tests/targets/packed/packed.c: a stand-in for a packer such as UPX.
 *
 * Behind this program's own bytes lies a Go executable in disguise (build.py puts it there):
 *
 *   this ELF file | payload, byte i xor (0xa5 ^ (i % 256) * 7) | u64 length | u64 "OSPACK01"
 *
 * It maps the payload's segments as anonymous memory at their addresses and jumps to its entry with
 * the stack as the kernel made it. /proc/PID/exe is then a file without any Go table that could be
 * read, and the process's own memory is the only place to look. There is no libc here: the Go
 * program must find nothing in its way. Linked at 0x70000000, far from Go's 0x400000.
 */
#include <elf.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#if !defined(__x86_64__)
#error "the packed target is for amd64"
#endif

#define PAGE 4096UL
#define TRAILER 0x31304b434150534fULL

struct trailer {
	uint64_t len;
	uint64_t magic;
};

static long sys(long n, long a, long b, long c, long d, long e, long f)
{
	register long r10 __asm__("r10") = d;
	register long r8 __asm__("r8") = e;
	register long r9 __asm__("r9") = f;
	long r;

	__asm__ volatile("syscall"
			 : "=a"(r)
			 : "a"(n), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
			 : "rcx", "r11", "memory");
	return r;
}

static void die(const char *msg)
{
	size_t n = 0;

	while (msg[n])
		n++;
	sys(SYS_write, 2, (long)msg, (long)n, 0, 0, 0);
	sys(SYS_exit_group, 1, 0, 0, 0, 0, 0);
	__builtin_unreachable();
}

static void *map(uint64_t addr, uint64_t len, int flags, int fd)
{
	long r = sys(SYS_mmap, (long)addr, (long)len, PROT_READ | (fd < 0 ? PROT_WRITE : 0),
		     MAP_PRIVATE | flags, fd, 0);

	if (r < 0 && r > -4096)
		die("packed: cannot map memory\n");
	return (void *)r;
}

static void copy(void *dst, const void *src, uint64_t n)
{
	__asm__ volatile("rep movsb" : "+D"(dst), "+S"(src), "+c"(n) : : "memory");
}

static void load_segment(const uint8_t *payload, const Elf64_Phdr *p)
{
	uint64_t start = p->p_vaddr & ~(PAGE - 1);
	uint64_t end = (p->p_vaddr + p->p_memsz + PAGE - 1) & ~(PAGE - 1);
	int prot = (p->p_flags & PF_R ? PROT_READ : 0) | (p->p_flags & PF_W ? PROT_WRITE : 0) |
		   (p->p_flags & PF_X ? PROT_EXEC : 0);

	map(start, end - start, MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1);
	copy((void *)p->p_vaddr, payload + p->p_offset, p->p_filesz);
	if (sys(SYS_mprotect, (long)start, (long)(end - start), prot, 0, 0, 0) < 0)
		die("packed: cannot protect memory\n");
}

static uint64_t load(const uint8_t *payload)
{
	const Elf64_Ehdr *h = (const Elf64_Ehdr *)payload;
	const Elf64_Phdr *p = (const Elf64_Phdr *)(payload + h->e_phoff);

	if (h->e_type != ET_EXEC)
		die("packed: the payload is no position-dependent executable\n");
	for (unsigned int i = 0; i < h->e_phnum; i++)
		if (p[i].p_type == PT_LOAD)
			load_segment(payload, &p[i]);
	return h->e_entry;
}

/* Called by _start; returns where to go on. */
__attribute__((used)) static uint64_t unpack(void)
{
	long fd = sys(SYS_open, (long)"/proc/self/exe", O_RDONLY | O_CLOEXEC, 0, 0, 0, 0);
	long size = fd < 0 ? -1 : sys(SYS_lseek, fd, 0, 2, 0, 0, 0);
	const struct trailer *t;
	const uint8_t *file, *hidden;
	uint8_t *payload;
	uint64_t entry, len;

	if (size < (long)sizeof(*t))
		die("packed: cannot read myself\n");
	file = map(0, (uint64_t)size, 0, (int)fd);
	t = (const struct trailer *)(file + size - sizeof(*t));
	if (t->magic != TRAILER || t->len > (uint64_t)size - sizeof(*t))
		die("packed: nothing is packed in here\n");
	len = t->len;
	hidden = (const uint8_t *)t - len;
	payload = map(0, len, MAP_ANONYMOUS, -1);
	for (uint64_t i = 0; i < len; i++)
		payload[i] = hidden[i] ^ (uint8_t)(0xa5 ^ (i % 256) * 7);
	entry = load(payload);
	sys(SYS_munmap, (long)payload, (long)len, 0, 0, 0, 0);
	sys(SYS_munmap, (long)file, size, 0, 0, 0, 0);
	sys(SYS_close, fd, 0, 0, 0, 0, 0);
	return entry;
}

/* The stack pointer is put back to where the kernel left it: at argc. */
__asm__(".globl _start\n"
	".type _start, @function\n"
	"_start:\n"
	"	mov %rsp, %rbx\n"
	"	and $-16, %rsp\n"
	"	call unpack\n"
	"	mov %rbx, %rsp\n"
	"	xor %edx, %edx\n"
	"	xor %ebp, %ebp\n"
	"	jmp *%rax\n");
