// contention is the target of the block and mutex profile tests. It waits in many ways, then sits
// in read(2), and writes its own profiles when asked to.
//
//	-block N   runtime.SetBlockProfileRate
//	-mutex N   runtime.SetMutexProfileFraction
//	-load      goes on to wait until the end
//
// Commands: dump (writes PREFIX.block.pb.gz and PREFIX.mutex.pb.gz), off (both rates to 0), quit.
package main

import (
	"os"
	"runtime"
	"runtime/pprof"
	"strconv"
	"time"

	"targets/rig"
)

func number(name string) int {
	for i, arg := range os.Args {
		if arg == name && i+1 < len(os.Args) {
			n, _ := strconv.Atoi(os.Args[i+1])
			return n
		}
	}
	return 0
}

func dump() {
	for _, name := range []string{"block", "mutex"} {
		f, err := os.Create(rig.Out + "." + name + ".pb.gz")
		if err != nil {
			panic(err)
		}
		if err := pprof.Lookup(name).WriteTo(f, 0); err != nil {
			panic(err)
		}
		f.Close()
	}
}

func main() {
	runtime.GOMAXPROCS(4)
	runtime.SetBlockProfileRate(number("-block"))
	runtime.SetMutexProfileFraction(number("-mutex"))
	waits()
	if rig.Load {
		go func() {
			for {
				contend(2, 1)
				ping(4)
			}
		}()
	}
	/* Goroutines that have let go of a lock may not have said so yet. */
	for runtime.NumGoroutine() > 1 && !rig.Load {
		time.Sleep(time.Millisecond)
	}
	rig.Ready()
	for {
		switch string(rig.Next()) {
		case "dump":
			dump()
			rig.Reply("dumped")
		case "off":
			runtime.SetBlockProfileRate(0)
			runtime.SetMutexProfileFraction(0)
			rig.Reply("off")
		case "quit", "":
			return
		default:
			rig.Reply("error: unknown command")
		}
	}
}
