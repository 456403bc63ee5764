// cgo is the heap target with a C library linked in: Go calls C, C calls back into Go, Go allocates. With
// C_THREAD in its environment, a thread that C has started calls Go and waits there.
package main

/*
#include <pthread.h>
#include <stddef.h>

extern void goAllocate(int n);
extern void goWait(void);

static void *wait_in_go(void *arg)
{
	goWait();
	return arg;
}

static void start_thread(void)
{
	pthread_t thread;

	pthread_create(&thread, NULL, wait_in_go, NULL);
}

static void descend(int depth, int n)
{
	if (depth > 0)
		descend(depth - 1, n);
	else
		goAllocate(n);
}

static void twice(int n)
{
	descend(3, n);
	goAllocate(n + 1);
}
*/
import "C"

import (
	"os"

	"targets/heap/work"
)

var waits = make(chan bool)

//export goWait
func goWait() {
	waits <- true
	waits <- true
}

func main() {
	if os.Getenv("C_THREAD") != "" {
		C.start_thread()
		<-waits
	}
	work.Main(allocateThroughC)
}

var kept [][]byte

//export goAllocate
func goAllocate(n C.int) {
	kept = append(kept, make([]byte, int(n)*64+1))
	if n > 2 {
		keepFromC(int(n))
	}
}

//go:noinline
func keepFromC(n int) {
	kept = append(kept, make([]byte, n+2000))
}

func allocateThroughC() {
	for i := 0; i < 6; i++ {
		C.twice(C.int(i))
	}
	done := make(chan bool)
	go func() {
		C.twice(50)
		done <- true
	}()
	<-done
}
