// metrics is the target of the tests of the runtime's own figures, and of forced block and mutex
// profiles: nothing of it asks for a profile.
//
//	-load   goroutines that wait for each other until the end
//
// Commands: stats (one line of "name=value" pairs), gc, grow N (keeps N MB more), burst N (keeps N MB in
// small pieces for a while), go N (N goroutines more that sleep), end N (N of them less), procs N
// (runtime.GOMAXPROCS), quit.
package main

import (
	"os"
	"runtime"
	"runtime/metrics"
	"strconv"
	"sync"
	"time"

	"targets/rig"
)

var (
	kept    [][]byte
	out     [16 << 10]byte
	mem     runtime.MemStats
	samples = []metrics.Sample{
		{Name: "/gc/heap/goal:bytes"},
		{Name: "/gc/cycles/total:gc-cycles"},
		{Name: "/gc/cycles/forced:gc-cycles"},
		{Name: "/sched/goroutines:goroutines"},
		{Name: "/sched/gomaxprocs:threads"},
		{Name: "/gc/gomemlimit:bytes"},
		{Name: "/gc/heap/live:bytes"},
	}
	stop = make(chan bool)
)

func pair(b []byte, name string, value uint64) []byte {
	b = append(append(append(b, ' '), name...), '=')
	return strconv.AppendUint(b, value, 10)
}

// stats allocates nothing after ReadMemStats, so that its figures stay true.
func stats() {
	metrics.Read(samples)
	runtime.ReadMemStats(&mem)
	b := append(out[:0], "stats"...)
	for i := range samples {
		if samples[i].Value.Kind() == metrics.KindUint64 {
			b = pair(b, samples[i].Name, samples[i].Value.Uint64())
		}
	}
	b = pair(b, "NumGC", uint64(mem.NumGC))
	b = pair(b, "NumForcedGC", uint64(mem.NumForcedGC))
	b = pair(b, "PauseTotalNs", mem.PauseTotalNs)
	b = pair(b, "LastGC", mem.LastGC)
	b = pair(b, "NextGC", mem.NextGC)
	b = pair(b, "TotalAlloc", mem.TotalAlloc)
	b = pair(b, "HeapAlloc", mem.HeapAlloc)
	b = pair(b, "HeapInuse", mem.HeapInuse)
	b = pair(b, "HeapReleased", mem.HeapReleased)
	b = pair(b, "Sys", mem.Sys)
	b = append(b, " GCCPUFraction="...)
	b = strconv.AppendFloat(b, mem.GCCPUFraction, 'g', -1, 64)
	b = pair(b, "NumGoroutine", uint64(runtime.NumGoroutine()))
	b = pair(b, "GOMAXPROCS", uint64(runtime.GOMAXPROCS(0)))
	b = append(b, " PauseNs="...)
	n := mem.NumGC
	if n > 256 {
		n = 256
	}
	for i := uint32(0); i < n; i++ {
		b = append(strconv.AppendUint(b, mem.PauseNs[(mem.NumGC-n+i)%256], 10), ',')
	}
	os.Stdout.Write(append(b, '\n'))
}

//go:noinline
func holdLock(mu *sync.Mutex) {
	mu.Lock()
	time.Sleep(time.Millisecond)
	mu.Unlock()
}

//go:noinline
func waitForTurn(c chan int) {
	<-c
}

func load() {
	var mu sync.Mutex
	c := make(chan int)

	// Nobody waits at times: the runtime does not begin to record a queue that never empties.
	for i := 0; i < 3; i++ {
		go func() {
			for {
				holdLock(&mu)
				time.Sleep(3 * time.Millisecond)
			}
		}()
	}
	go func() {
		for {
			time.Sleep(time.Millisecond)
			c <- 1
		}
	}()
	for {
		waitForTurn(c)
	}
}

// do does n times what the command says; it returns false for an unknown one.
func do(command string, n int) bool {
	switch command {
	case "gc":
		runtime.GC()
	case "grow":
		for i := 0; i < n; i++ {
			kept = append(kept, make([]byte, 1<<20))
		}
	case "burst":
		var some [][]byte
		for i := 0; i < n<<8; i++ {
			some = append(some, make([]byte, 4<<10))
		}
		runtime.GC()
		runtime.KeepAlive(some)
	case "go":
		for i := 0; i < n; i++ {
			go func() { <-stop }()
		}
	case "end":
		before := runtime.NumGoroutine()
		for i := 0; i < n; i++ {
			stop <- true
		}
		for runtime.NumGoroutine() > before-n {
			time.Sleep(time.Millisecond)
		}
	case "procs":
		runtime.GOMAXPROCS(n)
	default:
		return false
	}
	return true
}

func main() {
	if rig.Load {
		go load()
	}
	rig.Ready()
	for {
		line := string(rig.Next())
		word, n := line, 0
		for i := range line {
			if line[i] == ' ' {
				word = line[:i]
				n, _ = strconv.Atoi(line[i+1:])
			}
		}
		switch {
		case word == "quit" || word == "":
			return
		case word == "stats":
			stats()
		case do(word, n):
			rig.Reply("done")
		default:
			rig.Reply("error: unknown command")
		}
	}
}
