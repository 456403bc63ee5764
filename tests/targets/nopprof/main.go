// nopprof uses nothing of the memory profiler, so the linker turns it off (MemProfileRate is 0): the
// target of --force. It allocates steadily, a few megabytes a second, until stdin ends or says quit.
package main

import (
	"runtime"
	"time"

	"targets/rig"
)

const (
	cacheMax   = 4096
	entryBytes = 4 << 10
	churnBytes = 64 << 10
)

var (
	cache   = make(map[int][]byte)
	scratch []byte
)

func main() {
	go func() {
		for n := 0; ; n++ {
			leakCache(n)
			churn(n)
			time.Sleep(2 * time.Millisecond)
		}
	}()
	rig.Ready()
	for {
		switch string(rig.Next()) {
		case "goroutines":
			rig.ReplyNumber("goroutines", uint64(runtime.NumGoroutine()))
		case "quit", "":
			return
		default:
			rig.Reply("error: unknown command")
		}
	}
}

// leakCache keeps what it allocates, up to 16 MB.
//
//go:noinline
func leakCache(n int) {
	cache[n] = make([]byte, entryBytes)
	delete(cache, n-cacheMax)
}

// churn drops what it allocates.
//
//go:noinline
func churn(n int) {
	scratch = make([]byte, churnBytes+n%7)
}
