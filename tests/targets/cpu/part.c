/* part.c: a library that `opens` loads midway: time below a function that was not there before. */
volatile unsigned long part_sink;

__attribute__((noinline)) static void part_spin(void)
{
	for (unsigned long i = 0; i < 100000; i++)
		part_sink += i;
}

void part_work(void);
void part_work(void)
{
	part_spin();
	part_sink++;
}
