/*
 * shares.cc: the same in C++: a template, a virtual method and a lambda behind std::function.
 */
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <memory>
#include <poll.h>
#include <unistd.h>

#include "stopwatch.h"

namespace work {

volatile unsigned long sink;

/* In registers: see shares.c. */
__attribute__((noinline)) void spin(unsigned long n)
{
	unsigned long sum = 0;

	for (unsigned long i = 0; i < n * 25000; i++) {
		sum += i * i;
		__asm__ volatile("" : "+r"(sum));
	}
	sink = sink + sum;
}

template <typename T> __attribute__((noinline)) void half(T n)
{
	spin(n);
	sink = sink + 1;
}

struct Base {
	virtual ~Base() = default;
	virtual void third(unsigned long n) = 0;
};

struct Derived : Base {
	__attribute__((noinline)) void third(unsigned long n) override
	{
		spin(n);
		sink = sink + 1;
	}
};

__attribute__((noinline)) void fifth(const std::function<void(unsigned long)> &f, unsigned long n)
{
	f(n);
	sink = sink + 1;
}

} // namespace work

/* About ten times the part: of no fixed length there is nothing to fall into step with. */
static unsigned long some(unsigned long part)
{
	static uint32_t random = 2463534242;

	random ^= random << 13;
	random ^= random >> 17;
	random ^= random << 5;
	return part * (5 + random % 11);
}

int main(int argc, char **argv)
{
	struct stopwatch watch = {};
	unsigned long n;
	struct pollfd input = {0, POLLIN, 0};
	double end = argc > 1 ? atof(argv[1]) : 0;
	std::unique_ptr<work::Base> object(new work::Derived);
	char line[64];

	printf("ready %d\n", (int)getpid());
	fflush(stdout);
	for (;;) {
		stopwatch_start(&watch);
		work::half<unsigned long>(n = some(5));
		stopwatch_count(&watch, 0, n);
		object->third(n = some(3));
		stopwatch_count(&watch, 1, n);
		work::fifth([](unsigned long units) { work::spin(units); }, n = some(2));
		stopwatch_count(&watch, 2, n);
		if (end > 0 && (double)clock() / CLOCKS_PER_SEC >= end)
			return 0;
		if (end > 0 || poll(&input, 1, 0) <= 0)
			continue;
		if (!fgets(line, sizeof(line), stdin))
			return 0;
		for (uint64_t ns : watch.spent_ns)
			printf("%llu ", (unsigned long long)ns);
		printf("\n");
		fflush(stdout);
	}
}
