// cgo is the heap target with a C library linked in: Go calls C, C calls back into Go, Go allocates.
package main

/*
extern void goAllocate(int n);

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

import "targets/heap/work"

func main() {
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
