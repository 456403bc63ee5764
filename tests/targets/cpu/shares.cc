/*
 * shares.cc: the same in C++: a template, a virtual method and a lambda behind std::function, below
 * std::sort's neighbours. `shares SECONDS`.
 */
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <memory>
#include <unistd.h>

namespace work {

volatile unsigned long sink;

__attribute__((noinline)) void spin(unsigned long n)
{
	for (unsigned long i = 0; i < n * 2000; i++)
		sink = sink + i * i;
}

template <typename T> __attribute__((noinline)) void half(T n)
{
	spin(n);
	sink = sink + 1;
}

struct Base {
	virtual ~Base() = default;
	virtual void third() = 0;
};

struct Derived : Base {
	__attribute__((noinline)) void third() override
	{
		spin(30);
		sink = sink + 1;
	}
};

__attribute__((noinline)) void fifth(const std::function<void(int)> &f)
{
	f(20);
	sink = sink + 1;
}

} // namespace work

int main(int argc, char **argv)
{
	time_t end = time(nullptr) + (argc > 1 ? atoi(argv[1]) : 60);
	std::unique_ptr<work::Base> object(new work::Derived);

	printf("ready %d\n", (int)getpid());
	fflush(stdout);
	while (time(nullptr) < end) {
		work::half<unsigned long>(50);
		object->third();
		work::fifth([](int n) { work::spin(n); });
	}
	return 0;
}
