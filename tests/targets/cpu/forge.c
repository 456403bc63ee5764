/*
 * forge.c: has a perf map of made up names, and while it spins its frame pointer leads through
 * random addresses among them: each sample has a stack that was never seen.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define BYTES (1 << 20)
#define NAME_BYTES 16
#define DEPTH 20

/* Without unwind information. */
void spin(void *frame);
__asm__(".text\n"
	".type spin, @function\n"
	"spin:\n"
	"	push %rbp\n"
	"	mov %rdi, %rbp\n"
	"	mov $20000, %ecx\n"
	"1:	dec %ecx\n"
	"	jnz 1b\n"
	"	pop %rbp\n"
	"	ret\n"
	".size spin, . - spin\n");

int main(void)
{
	static uint64_t frames[DEPTH + 1][2];
	uint8_t *code = mmap(NULL, BYTES, PROT_READ | PROT_WRITE | PROT_EXEC,
			     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char path[64];
	FILE *map;

	if (code == MAP_FAILED)
		return 1;
	memset(code, 0x90, BYTES);
	snprintf(path, sizeof(path), "/tmp/perf-%d.map", (int)getpid());
	map = fopen(path, "w");
	if (!map)
		return 1;
	srandom((unsigned int)getpid());
	for (size_t i = 0; i < BYTES; i += NAME_BYTES)
		fprintf(map, "%lx %x made_up_%lx_%lx\n", (unsigned long)(code + i), NAME_BYTES,
			(unsigned long)random(), (unsigned long)random());
	fclose(map);
	printf("ready %d\n", (int)getpid());
	fflush(stdout);
	for (;;) {
		for (size_t i = 0; i < DEPTH; i++) {
			frames[i][0] = (uintptr_t)frames[i + 1];
			frames[i][1] = (uintptr_t)code + 1 + (size_t)random() % (BYTES - 1);
		}
		spin(frames);
	}
}
