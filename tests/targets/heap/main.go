// heap is the plain target of the heap profile tests: see package work for what it allocates and
// for what its own dump may contain beyond an outside reading.
package main

import "targets/heap/work"

func main() {
	work.Main(allocateInMain)
}

var kept [][]byte

func allocateInMain() {
	for i := 0; i < 8; i++ {
		kept = append(kept, make([]byte, 100*i+1))
	}
}
