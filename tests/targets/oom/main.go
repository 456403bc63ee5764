// oom fills its memory until it is killed: main.appendToCache keeps what it allocates, main.serve
// allocates a little and drops it. It waits for a line on stdin, and then never ends by itself.
//
//	oom [-max-mb 200]
//
// It stays there once it has leaked so much.
package main

import (
	"bufio"
	"fmt"
	"os"
	"runtime/pprof"
	"strconv"
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
	max := 1 << 40
	if len(os.Args) > 2 && os.Args[1] == "-max-mb" {
		mb, _ := strconv.Atoi(os.Args[2])
		max = mb << 20
	}
	// Without a use of it the linker turns sampling off.
	_ = pprof.Lookup("heap")
	fmt.Println("ready", os.Getpid())
	if !bufio.NewScanner(os.Stdin).Scan() {
		return
	}
	for len(cache)*chunk < max {
		appendToCache()
		serve()
	}
	for {
		time.Sleep(time.Second)
	}
}
