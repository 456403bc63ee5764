// cshared is the heap target as a c-shared library: host/host.c loads it and does the talking.
package main

import "C"

import "targets/heap/work"

func main() {}

// TargetStart allocates everything and leaves the library quiet.
//
//export TargetStart
func TargetStart() {
	work.Start(allocateInLibrary)
}

//export TargetDump
func TargetDump() C.int {
	if work.Dump() {
		return 0
	}
	return -1
}

//export TargetCollect
func TargetCollect() {
	work.Collect()
}

//export TargetMore
func TargetMore() {
	work.More()
}

var kept [][]byte

func allocateInLibrary() {
	for i := 0; i < 8; i++ {
		kept = append(kept, make([]byte, 100*i+1))
	}
}
