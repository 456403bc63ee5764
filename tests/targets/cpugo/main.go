// cpugo spends about 50, 30 and 20 percent of its time below three functions, inlined calls among
// them, and can write its own CPU profile meanwhile.
//
// Commands: "counters" is answered with the units of work that each of the three has done;
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
)

var (
	sink   uint64
	units  [3]uint64
	random uint32 = 2463534242
)

func step(i uint64) uint64 { // small enough to be inlined
	return i*i ^ i>>3
}

// In registers: CPUs may or may not see that a variable is stored and loaded again, and a unit of
// work would take one time or another.
//
//go:noinline
func spin(n uint64) {
	sum := sink
	for i := uint64(0); i < n*5000; i++ {
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
			answer = fmt.Sprint(atomic.LoadUint64(&units[0]), atomic.LoadUint64(&units[1]),
				atomic.LoadUint64(&units[2]))
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

func main() {
	fmt.Println("ready", os.Getpid())
	go serve()
	for {
		n := [3]uint64{some(5), some(3), some(2)}
		half(n[0])
		third(n[1])
		fifth(n[2])
		for i := range n {
			atomic.AddUint64(&units[i], n[i])
		}
	}
}
