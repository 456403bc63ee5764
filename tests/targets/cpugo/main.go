// cpugo spends known shares of its time below three functions, inlined calls among them, and can
// write its own CPU profile meanwhile.
//
// Commands: "profile PATH SECONDS" answers "profiled" when the file is complete.
package main

import (
	"bufio"
	"fmt"
	"os"
	"runtime/pprof"
	"time"
)

var sink uint64

func step(i uint64) uint64 { // small enough to be inlined
	return i*i ^ i>>3
}

//go:noinline
func spin(n uint64) {
	for i := uint64(0); i < n*2000; i++ {
		sink += step(i)
	}
}

//go:noinline
func half() { spin(50); sink++ }

//go:noinline
func third() { spin(30); sink++ }

//go:noinline
func fifth() { spin(20); sink++ }

func profile(path string, seconds float64) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	if err := pprof.StartCPUProfile(f); err != nil {
		return err
	}
	time.Sleep(time.Duration(seconds * float64(time.Second)))
	pprof.StopCPUProfile()
	return f.Close()
}

func serve() {
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		var path string
		var seconds float64
		if _, err := fmt.Sscanf(in.Text(), "profile %s %g", &path, &seconds); err != nil {
			fmt.Println("error", err)
			continue
		}
		if err := profile(path, seconds); err != nil {
			fmt.Println("error", err)
			continue
		}
		fmt.Println("profiled")
	}
	os.Exit(0)
}

func main() {
	fmt.Println("ready", os.Getpid())
	go serve()
	for {
		half()
		third()
		fifth()
	}
}
