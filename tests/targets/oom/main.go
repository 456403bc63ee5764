// oom fills its memory until it is killed: main.appendToCache keeps what it allocates, main.serve
// allocates as much again and drops it. It waits for a line on stdin, and then never ends by itself.
//
//	oom -mb 200
//
// is how much it leaks each second; 0 is as fast as it can.
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
	mb := 0
	if len(os.Args) > 2 && os.Args[1] == "-mb" {
		mb, _ = strconv.Atoi(os.Args[2])
	}
	// Without a use of it the linker turns sampling off.
	_ = pprof.Lookup("heap")
	fmt.Println("ready")
	if !bufio.NewScanner(os.Stdin).Scan() {
		return
	}
	for start, n := time.Now(), 0; ; n++ {
		appendToCache()
		serve()
		for mb > 0 && time.Since(start) < time.Duration(n)*chunk*time.Second/time.Duration(mb<<20) {
			time.Sleep(time.Millisecond)
		}
	}
}
