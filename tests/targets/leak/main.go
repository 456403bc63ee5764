// leak has known behaviour: main.leak keeps what it allocates, main.churn drops it, each at the rate
// that it is told, and both count exactly what they allocate. It runs until stdin ends or says quit.
//
//	leak -leak-mb 1 -churn-mb 50
//
// The answer to "counts" is "leak BYTES churn BYTES"; "gc" runs collections, after which the runtime
// has published all of it. A name for the service comes from OTEL_SERVICE_NAME, as with any program.
package main

import (
	"math"
	"os"
	"runtime"
	"runtime/pprof"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"targets/rig"
)

const (
	step       = 20 * time.Millisecond
	leakBytes  = 4 << 10
	churnBytes = 32 << 10
)

var (
	leaked  uint64
	churned uint64
	paused  int32
	working sync.RWMutex
	kept    [][]byte
	scratch []byte
	reply   [64]byte
)

func argument(name string, value float64) float64 {
	for i, arg := range os.Args {
		if arg == name && i+1 < len(os.Args) {
			if v, err := strconv.ParseFloat(os.Args[i+1], 64); err == nil {
				return v
			}
		}
	}
	return value
}

// leak keeps one block.
//
//go:noinline
func leak(i int) {
	kept[i] = make([]byte, leakBytes)
	atomic.AddUint64(&leaked, leakBytes)
}

// churn allocates one block and drops the one before.
//
//go:noinline
func churn() {
	scratch = make([]byte, churnBytes)
	atomic.AddUint64(&churned, churnBytes)
}

// run calls f so often that it allocates bytesPerSecond, whatever the scheduler does to the ticks;
// or as often as it can. What falls into a pause is not made up for.
func run(bytesPerSecond float64, block int, f func(i int)) {
	done, owed := 0, 0.0
	for last := time.Now(); ; {
		time.Sleep(step)
		now := time.Now()
		owed += now.Sub(last).Seconds() * bytesPerSecond / float64(block)
		last = now
		working.RLock()
		for ; owed >= 1 && atomic.LoadInt32(&paused) == 0; owed-- {
			f(done)
			done++
		}
		working.RUnlock()
		owed -= math.Floor(owed)
	}
}

// pause returns when nobody allocates any more.
func pause() {
	atomic.StoreInt32(&paused, 1)
	working.Lock()
	working.Unlock()
}

// replyCounts allocates nothing: one sample of that would be part of what a test compares.
func replyCounts() {
	line := append(reply[:0], "leak "...)
	line = strconv.AppendUint(line, atomic.LoadUint64(&leaked), 10)
	line = append(line, " churn "...)
	line = strconv.AppendUint(line, atomic.LoadUint64(&churned), 10)
	rig.ReplyBytes(line)
}

func main() {
	// A program that can look up its heap profile keeps the runtime's memory sampling on.
	if pprof.Lookup("heap") == nil {
		panic("no heap profile")
	}
	leakRate := argument("-leak-mb", 1) * (1 << 20)
	churnRate := argument("-churn-mb", 50) * (1 << 20)
	// Room for all that memory has, so that growing the list is not part of what leaks.
	kept = make([][]byte, (4<<30)/leakBytes)
	go run(leakRate, leakBytes, func(i int) { leak(i % len(kept)) })
	go run(churnRate, churnBytes, func(int) { churn() })
	rig.Ready()
	for {
		switch string(rig.Next()) {
		case "counts":
			replyCounts()
		case "pause":
			pause()
			replyCounts()
		case "go":
			atomic.StoreInt32(&paused, 0)
			replyCounts()
		case "gc":
			for i := 0; i < 3; i++ {
				runtime.GC()
			}
			rig.Reply("done")
		case "quit", "":
			return
		default:
			rig.Reply("error: unknown command")
		}
	}
}
