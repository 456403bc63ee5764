// bigtable has a large heap profile: 8192 paths through a tree of calls, each a bucket of its own
// with some twenty frames, as in a large service. It then waits for commands:
//
//	ops      answers "ops N": units of load completed since the start (0 without -load)
//	spin N   answers "done" after N seconds (for a CPU profile of the load)
//	gc       runs runtime.GC() twice; answers "done"
//	quit     ends
//
// The table is sampled with -rate (default 1). With -load one goroutine then allocates and computes
// as fast as it can, sampled at the runtime's default rate unless -rate says otherwise.
package main

import (
	"os"
	"runtime"
	"runtime/pprof"
	"sync/atomic"
	"time"

	"targets/rig"
)

const (
	levels      = 13
	defaultRate = 512 << 10
)

type record struct {
	next    *record
	payload [6]uint64
}

var (
	table []*record
	units uint64
	sink  *record
)

func main() {
	if rig.Rate == 0 {
		runtime.MemProfileRate = 1
	}
	table = make([]*record, 0, 1<<levels)
	for path := 0; path < 1<<levels; path++ {
		table = append(table, request(path))
	}
	runtime.GC()
	runtime.GC()
	if rig.Rate == 0 {
		runtime.MemProfileRate = defaultRate
	}
	// Whoever can look a profile up keeps the memory profiler in the program.
	if pprof.Lookup("heap") == nil {
		panic("no heap profile")
	}
	if rig.CPU != "" {
		defer profileCPU(rig.CPU)()
	}
	if rig.Load {
		go load()
	}
	rig.Ready()
	serve()
}

func serve() {
	for {
		line := rig.Next()
		switch {
		case line == nil || string(line) == "quit":
			return
		case string(line) == "ops":
			rig.ReplyNumber("ops", atomic.LoadUint64(&units))
		case string(line) == "gc":
			runtime.GC()
			runtime.GC()
			rig.Reply("done")
		case len(line) == 6 && string(line[:5]) == "spin ":
			time.Sleep(time.Duration(line[5]-'0') * time.Second)
			rig.Reply("done")
		default:
			rig.Reply("error: unknown command")
		}
	}
}

func profileCPU(path string) (stop func()) {
	f, err := os.Create(path)
	if err != nil {
		panic(err)
	}
	if err := pprof.StartCPUProfile(f); err != nil {
		panic(err)
	}
	return func() {
		pprof.StopCPUProfile()
		f.Close()
	}
}

//go:noinline
func request(path int) *record { return handle(path) }

//go:noinline
func handle(path int) *record { return route(path, levels) }

//go:noinline
func route(path, level int) *record {
	if path&1 == 0 {
		return even(path>>1, level-1)
	}
	return odd(path>>1, level-1)
}

//go:noinline
func even(path, level int) *record {
	if level == 0 {
		return store(path)
	}
	if path&1 == 0 {
		return even(path>>1, level-1)
	}
	return odd(path>>1, level-1)
}

//go:noinline
func odd(path, level int) *record {
	if level == 0 {
		return store(path)
	}
	if path&1 == 0 {
		return even(path>>1, level-1)
	}
	return odd(path>>1, level-1)
}

//go:noinline
func store(path int) *record { return newRecord(path) }

//go:noinline
func newRecord(path int) *record { return &record{payload: [6]uint64{uint64(path)}} }

// One unit: a few requests whose records die, and some arithmetic.
func load() {
	x := uint64(88172645463325252)
	for {
		for i := 0; i < 64; i++ {
			x ^= x << 13
			x ^= x >> 7
			x ^= x << 17
			sink = request(int(x & (1<<levels - 1)))
		}
		atomic.AddUint64(&units, 1)
	}
}
