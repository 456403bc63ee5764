// service is a server under requests from many connections: 8192 kinds of request, each with a call
// path, and so a heap bucket, of its own. Whichever of the runtime's Ps handles a request takes the
// bucket's memory from its own chunk: neighbours in the list of buckets rarely are neighbours in
// memory. With -turns two goroutines on two Ps take turns instead: then no two neighbours are.
//
// With -steady it has 512 kinds, each with a function of its own that handles it, and goes on to
// handle all of them every eighth of a second, sampled. An allocation has one stack when its span
// has room and another when it has none: a thousand buckets, and few more later. It serves its
// profiles on a port that it prints: an ordinary service, which collects garbage every few seconds.
//
// It prints "ready PID" (and the address) when every kind of request was handled, and ends with its
// input.
package main

import (
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/http"
	_ "net/http/pprof"
	"os"
	"runtime"
	"runtime/pprof"
	"sync"
	"sync/atomic"
	"time"
)

const (
	levels      = 13
	steady      = 9   // levels, with -steady
	steadyWarm  = 400 // rounds: then nearly all stacks have been there
	steadyRate  = 512
	steadyLive  = 1 << 14 // records that live at any time
	cpus        = 8
	connections = 64
)

type record struct {
	next    *record
	payload [6]uint64
}

var (
	mu    sync.Mutex
	table []*record
	// One for each kind with -steady; in a file that is generated.
	handlers [1 << steady]func(kind, level int) *record
)

func main() {
	mode := ""
	if len(os.Args) > 1 {
		mode = os.Args[1]
	}
	switch mode {
	case "-steady":
		runSteady()
		return
	case "-turns":
		takeTurns()
	default:
		serve()
	}
	runtime.GC()
	runtime.GC()
	// Whoever can look a profile up keeps the memory profiler in the program.
	if pprof.Lookup("heap") == nil {
		panic("no heap profile")
	}
	fmt.Printf("ready %d\n", os.Getpid())
	io.Copy(io.Discard, os.Stdin)
	runtime.KeepAlive(table)
}

// takeTurns handles even kinds on one P and odd ones on another, strictly in order.
func takeTurns() {
	runtime.GOMAXPROCS(2)
	var turn int64
	var both sync.WaitGroup
	for first := 0; first < 2; first++ {
		both.Add(1)
		go func(first int) {
			defer both.Done()
			for kind := first; kind < 1<<levels; kind += 2 {
				// Both are always busy, so that each keeps its P.
				for atomic.LoadInt64(&turn) != int64(kind) {
				}
				table = append(table, route(kind, levels))
				atomic.StoreInt64(&turn, int64(kind+1))
			}
		}(first)
	}
	both.Wait()
}

func runSteady() {
	runtime.MemProfileRate = 0
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	check(err)
	go http.Serve(listener, nil)
	ready := make(chan bool)
	go handleAll(ready)
	<-ready
	fmt.Printf("ready %d %s\n", os.Getpid(), listener.Addr())
	io.Copy(io.Discard, os.Stdin)
}

// handleAll has one call path to each kind of request. All are sampled at first; later some are.
// Each round is alike, so that it is one call path.
func handleAll(ready chan<- bool) {
	live := make([]*record, steadyLive)
	tick := time.Tick(125 * time.Millisecond)
	runtime.MemProfileRate = 1
	for n := 0; ; n++ {
		for kind := 0; kind < 1<<steady; kind++ {
			live[(n<<steady+kind)%steadyLive] = handlers[kind](kind, steady)
		}
		if n < steadyWarm {
			continue
		}
		if n == steadyWarm {
			runtime.MemProfileRate = steadyRate
			runtime.GC()
			runtime.GC()
			close(ready)
		}
		<-tick
	}
}

func serve() {
	runtime.GOMAXPROCS(cpus)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	check(err)
	go accept(listener)
	var clients sync.WaitGroup
	for c := 0; c < connections; c++ {
		clients.Add(1)
		go func(c int) {
			defer clients.Done()
			client(listener.Addr().String(), c)
		}(c)
	}
	clients.Wait()
}

func init() {
	runtime.MemProfileRate = 1
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}

func accept(listener net.Listener) {
	for {
		conn, err := listener.Accept()
		check(err)
		go handle(conn)
	}
}

// A request is the number of its kind; the answer is one byte.
func handle(conn net.Conn) {
	var request [2]byte
	for {
		if _, err := io.ReadFull(conn, request[:]); err != nil {
			return
		}
		r := route(int(binary.LittleEndian.Uint16(request[:])), levels)
		mu.Lock()
		table = append(table, r)
		mu.Unlock()
		if _, err := conn.Write(request[:1]); err != nil {
			return
		}
	}
}

func client(addr string, first int) {
	conn, err := net.Dial("tcp", addr)
	check(err)
	defer conn.Close()
	var request [2]byte
	for kind := first; kind < 1<<levels; kind += connections {
		binary.LittleEndian.PutUint16(request[:], uint16(kind))
		_, err = conn.Write(request[:])
		check(err)
		_, err = io.ReadFull(conn, request[:1])
		check(err)
	}
}

//go:noinline
func route(path, level int) *record {
	if level == 0 {
		return store(path)
	}
	if path&1 == 0 {
		return even(path>>1, level-1)
	}
	return odd(path>>1, level-1)
}

//go:noinline
func even(path, level int) *record {
	if level == 0 {
		return store(path)
	}
	if path&1 == 0 {
		return even(path>>1, level-1)
	}
	return odd(path>>1, level-1)
}

//go:noinline
func odd(path, level int) *record {
	if level == 0 {
		return store(path)
	}
	if path&1 == 0 {
		return even(path>>1, level-1)
	}
	return odd(path>>1, level-1)
}

//go:noinline
func store(path int) *record { return &record{payload: [6]uint64{uint64(path)}} }
