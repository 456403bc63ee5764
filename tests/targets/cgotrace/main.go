// cgotrace is a program with a cgo traceback (runtime.SetCgoTraceback): the stacks of what Go
// allocates below C hold addresses of C functions, which Go itself cannot name.
package main

// #include "trace.h"
import "C"

import (
	"runtime"
	"unsafe"

	"targets/heap/work"
)

func init() {
	runtime.SetCgoTraceback(0, unsafe.Pointer(C.trace_back), unsafe.Pointer(C.trace_context), nil)
}

func main() {
	work.Main(allocateThroughC)
}

var kept [][]byte

//export goAllocate
func goAllocate(n C.int) {
	kept = append(kept, make([]byte, int(n)*64+1))
}

func allocateThroughC() {
	for i := 0; i < 6; i++ {
		C.c_outer(C.int(i))
	}
}
