// cpugo spends about 50, 30 and 20 percent of its time below three functions, inlined calls among
// them, and can write its own CPU profile meanwhile.
//
// Commands: "counters" is answered with the CPU time of each of the three in nanoseconds;
// "profile PATH" with "profiling" when it has begun, and "stop" with "profiled" when the file is
// complete.
package main

import (
	"bufio"
	"fmt"
	"os"
	"runtime"
	"runtime/pprof"
	"strings"
	"sync/atomic"
	"syscall"
	"unsafe"
)

var (
	sink   uint64
	spent  [3]uint64 // nanoseconds
	random uint32    = 2463534242
)

func step(i uint64) uint64 { // small enough to be inlined
	return i*i ^ i>>3
}

// In registers: CPUs may or may not see that a variable is stored and loaded again.
//
//go:noinline
func spin(n uint64) {
	sum := sink
	for i := uint64(0); i < n*25000; i++ {
		sum += step(i)
	}
	sink = sum
}

//go:noinline
func half(n uint64) { spin(n); sink++ }

//go:noinline
func third(n uint64) { spin(n); sink++ }

//go:noinline
func fifth(n uint64) { spin(n); sink++ }

// About ten times the part: of no fixed length there is nothing to fall into step with.
func some(part uint64) uint64 {
	random ^= random << 13
	random ^= random >> 17
	random ^= random << 5
	return part * (5 + uint64(random%11))
}

func start(path string) (*os.File, error) {
	f, err := os.Create(path)
	if err != nil {
		return nil, err
	}
	// Said first, it stays: twice the usual rate takes half the time.
	runtime.SetCPUProfileRate(200)
	return f, pprof.StartCPUProfile(f)
}

func serve() {
	var f *os.File
	var err error
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		words := strings.Fields(in.Text())
		answer := ""
		switch {
		case words[0] == "counters":
			answer = fmt.Sprint(atomic.LoadUint64(&spent[0]), atomic.LoadUint64(&spent[1]),
				atomic.LoadUint64(&spent[2]))
		case words[0] == "profile":
			f, err = start(words[1])
			answer = "profiling"
		case words[0] == "stop":
			pprof.StopCPUProfile()
			err = f.Close()
			answer = "profiled"
		}
		if err != nil {
			answer = "error " + err.Error()
		}
		fmt.Println(answer)
	}
	os.Exit(0)
}

// The CPU time of this thread.
func now() uint64 {
	const threadCPU = 3
	var t syscall.Timespec
	syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, threadCPU, uintptr(unsafe.Pointer(&t)), 0)
	return uint64(t.Nano())
}

// watch tells where time goes. Time, not units of work: the same loop may run at twice the speed,
// depending on who called it and on where the compiler put it.
type watch struct {
	last uint64
	best [3]float64 // nanoseconds a unit
}

// Since the last call it was this part. What takes many times as long as usual was not run
// meanwhile: the clock of a virtual machine runs on.
func (w *watch) count(part int, units uint64) {
	t := now()
	ns, each := t-w.last, float64(t-w.last)/float64(units)
	if w.best[part] == 0 || each < w.best[part] {
		w.best[part] = each
	}
	if each > 4*w.best[part] {
		ns = uint64(4 * w.best[part] * float64(units))
	}
	atomic.AddUint64(&spent[part], ns)
	w.last = t
}

func main() {
	var w watch
	runtime.LockOSThread()
	fmt.Println("ready", os.Getpid())
	go serve()
	for {
		n := [3]uint64{some(5), some(3), some(2)}
		w.last = now()
		half(n[0])
		w.count(0, n[0])
		third(n[1])
		w.count(1, n[1])
		fifth(n[2])
		w.count(2, n[2])
	}
}
