/*
 * tests/targets/clock/shifted.c: preloaded, it shifts the wall clock of a program by as many
 * nanoseconds as the file SHIFTED_CLOCK holds at that moment: an int64_t.
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static const volatile int64_t *shift_ns;

__attribute__((constructor)) static void map_shift(void)
{
	const char *path = getenv("SHIFTED_CLOCK");
	int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
	void *at =
		fd < 0 ? MAP_FAILED : mmap(NULL, sizeof(*shift_ns), PROT_READ, MAP_SHARED, fd, 0);

	if (at == MAP_FAILED)
		_exit(127);
	shift_ns = at;
	(void)close(fd);
}

int clock_gettime(clockid_t id, struct timespec *ts)
{
	int r = (int)syscall(SYS_clock_gettime, id, ts);
	int64_t ns;

	/* Libraries may ask before we are ready. */
	if (r < 0 || id != CLOCK_REALTIME || !shift_ns)
		return r;
	ns = ts->tv_sec * 1000000000LL + ts->tv_nsec + *shift_ns;
	*ts = (struct timespec){.tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000};
	return 0;
}

time_t time(time_t *ret)
{
	struct timespec ts;

	(void)clock_gettime(CLOCK_REALTIME, &ts);
	if (ret)
		*ret = ts.tv_sec;
	return ts.tv_sec;
}
