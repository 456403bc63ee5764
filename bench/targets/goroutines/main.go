// goroutines is a server with N goroutines that wait, as connections do: at 64 places, by way of
// different calls, for what a channel, a select, a mutex or a condition gives them. It serves its
// profiles on a port that it prints. With -load it computes and allocates besides, as fast as it
// can, and hands its results to some of those goroutines.
//
// It prints "ready PID ADDRESS" when all of them wait, answers "ops" with "ops N", the units of load
// so far, and ends with its input. Usage: goroutines N [-load]
package main

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	_ "net/http/pprof"
	"os"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

const (
	levels  = 4 // of calls that differ; two more bits say what is waited for
	workers = 64
)

type result struct {
	next    *result
	payload [14]uint64
}

var (
	never = make(chan int)
	other = make(chan int)
	mu    sync.Mutex
	cond  = sync.NewCond(new(sync.Mutex))
	begun int64
	units uint64
	sink  *result
)

func main() {
	n, err := strconv.Atoi(os.Args[1])
	if err != nil {
		panic(err)
	}
	mu.Lock()
	for i := 0; i < n; i++ {
		go connection(i)
	}
	for atomic.LoadInt64(&begun) < int64(n) {
		time.Sleep(time.Millisecond)
	}
	if len(os.Args) > 2 {
		go load()
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	go http.Serve(l, nil)
	runtime.GC()
	fmt.Printf("ready %d %s\n", os.Getpid(), l.Addr())
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		fmt.Printf("ops %d\n", atomic.LoadUint64(&units))
	}
}

func connection(i int) { request(i, levels) }

//go:noinline
func request(path, level int) {
	switch {
	case level == 0:
		wait(path >> levels)
	case path>>(level-1)&1 == 0:
		left(path, level)
	default:
		right(path, level)
	}
	runtime.KeepAlive(&level)
}

//go:noinline
func left(path, level int) { request(path, level-1); runtime.KeepAlive(&level) }

//go:noinline
func right(path, level int) { request(path, level-1); runtime.KeepAlive(&level) }

func wait(kind int) {
	atomic.AddInt64(&begun, 1)
	switch kind % 4 {
	case 0:
		<-never
	case 1:
		select {
		case <-never:
		case <-other:
		}
	case 2:
		mu.Lock()
	case 3:
		cond.L.Lock()
		cond.Wait()
	}
}

func load() {
	var queue [workers]chan *result
	for i := range queue {
		queue[i] = make(chan *result, 1)
		go work(queue[i])
	}
	for i := 0; ; i++ {
		r := &result{}
		for k := range r.payload {
			r.payload[k] = uint64(i) * 0x9e3779b97f4a7c15 >> uint(k)
		}
		queue[i%workers] <- r
		atomic.AddUint64(&units, 1)
	}
}

func work(queue chan *result) {
	for r := range queue {
		for k := 0; k < 200; k++ {
			r.payload[k%len(r.payload)] ^= r.payload[(k+1)%len(r.payload)] << 1
		}
		sink = r
	}
}
