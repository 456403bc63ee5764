// oom fills its memory until it is killed: main.appendToCache keeps what it allocates, main.serve
// allocates a little and drops it. It waits for a line on stdin, and then never ends by itself.
//
//	oom [-max-mb 200] [-mb-per-s 50]
//
// It stays there once it has leaked so much, and leaks as fast as it can unless told otherwise.
package main

import (
	"bufio"
	"flag"
	"fmt"
	"os"
	"runtime/pprof"
	"time"
)

const chunk = 64 << 10

var (
	cache   [][]byte
	scratch []byte
)

//go:noinline
func appendToCache() {
	b := make([]byte, chunk)
	for i := 0; i < len(b); i += 4096 {
		b[i] = 1
	}
	cache = append(cache, b)
}

//go:noinline
func serve() {
	scratch = make([]byte, chunk/8)
}

func main() {
	maxMB := flag.Int("max-mb", 1<<20, "")
	pace := flag.Int("mb-per-s", 1<<20, "")
	flag.Parse()
	// Without a use of it the linker turns sampling off.
	_ = pprof.Lookup("heap")
	fmt.Println("ready", os.Getpid())
	if !bufio.NewScanner(os.Stdin).Scan() {
		return
	}
	for begin := time.Now(); len(cache)*chunk < *maxMB<<20; {
		appendToCache()
		serve()
		due := begin.Add(time.Duration(len(cache)) * chunk * time.Second / time.Duration(*pace<<20))
		time.Sleep(time.Until(due))
	}
	for {
		time.Sleep(time.Second)
	}
}
