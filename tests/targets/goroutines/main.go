// The target goroutines waits in many ways at once: channels, select, mutexes, sleep, pipes, locked
// threads, deep and inlined calls, generics, with and without pprof labels. Between two commands
// nothing moves, so that its own goroutine profile can be compared with one taken from outside.
//
//	-n N     N goroutines that wait for a channel, besides the others
//	dump     writes PREFIX.goroutine.pb.gz, .1.txt and .2.txt, as runtime/pprof has them
//	leak N   N goroutines more that wait for ever
//	ways N   N goroutines more that wait at the end of N different chains of calls
//	churn    from now on goroutines come and go, up to 10,000 a second, and others move between two
//	         chains of calls
//	made     how many have come so far
//	spin     two goroutines run without an end
//	finalize a finalizer runs and waits for ever
//	gc       two collections, so that the runtime knows since when goroutines wait
package main

import (
	"bytes"
	"context"
	"os"
	"runtime"
	"runtime/pprof"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"targets/rig"
)

var (
	never  = make(chan int) // only received from
	full   = make(chan int) // only sent to
	mutex  sync.Mutex
	rw     sync.RWMutex
	cond   = sync.NewCond(&sync.Mutex{})
	group  sync.WaitGroup
	ready  sync.WaitGroup
	sink   int
	spun   uint64
	made   uint64
	pipes  []*os.File
	closed = make(chan struct{})
)

type waiter interface{ wait(ch chan int) int }

type value struct{ n int }

func (v value) wait(ch chan int) int { return v.n + <-ch }

type embeds struct{ value }

//go:noinline
func receive(ch chan int) int { return <-ch }

func inlinedInner(ch chan int) int { return receive(ch) + 1 }

func inlinedOuter(ch chan int) int { return inlinedInner(ch) * 2 }

//go:noinline
func deep(n int, ch chan int) int {
	if n == 0 {
		return receive(ch)
	}
	return deep(n-1, ch) + 1
}

//go:noinline
func fat(n int, ch chan int) int {
	var room [512]int
	room[n%512] = n
	if n == 0 {
		return receive(ch)
	}
	return fat(n-1, ch) + room[(n+1)%512]
}

//go:noinline
func waitsInDefer(ch chan int) {
	defer func() { sink = receive(ch) }()
}

//go:noinline
func waitsInPanic(ch chan int) {
	defer func() {
		sink = receive(ch)
		_ = recover()
	}()
	var p *value
	sink = p.n
}

// way calls left or right for each bit of n.
//
//go:noinline
func way(n, bits int, ch chan int) int {
	if bits == 0 {
		return receive(ch)
	}
	if n&1 == 1 {
		return left(n, bits, ch)
	}
	return right(n, bits, ch)
}

//go:noinline
func left(n, bits int, ch chan int) int { return way(n>>1, bits-1, ch) + 1 }

//go:noinline
func right(n, bits int, ch chan int) int { return way(n>>1, bits-1, ch) + 2 }

func start(f func()) {
	ready.Add(1)
	go func() {
		ready.Done()
		f()
	}()
}

func waitMany() {
	start(func() { receive(never) })
	start(func() { sink = inlinedOuter(never) })
	start(func() { sink = deep(20, never) })
	start(func() { sink = deep(300, never) })
	start(func() { sink = deep(604, never) })
	start(func() { sink = fat(40, never) })
	start(func() { full <- 1 })
	start(func() {
		select {
		case <-never:
		case full <- 2:
		}
	})
	start(func() { select {} })
	start(func() { mutex.Lock() })
	start(func() { rw.RLock() })
	start(func() { cond.L.Lock(); cond.Wait() })
	start(func() { group.Wait() })
	start(func() { time.Sleep(24 * time.Hour) })
	start(func() { waitsInDefer(never) })
	start(func() { waitsInPanic(never) })
	start(func() { var ch chan int; <-ch })
	start(func() { runtime.LockOSThread(); receive(never) })
	start(func() { var w waiter = embeds{value{1}}; sink = w.wait(never) })
	start(func() { f := value{2}.wait; sink = f(never) })
	ready.Add(1)
	start(func() { time.AfterFunc(0, func() { ready.Done(); receive(never) }); <-closed })
	for i := 0; i < 3; i++ {
		start(func() { ticker := time.NewTicker(24 * time.Hour); <-ticker.C })
	}
}

// Kept open: a pipe that is read through the poller, and one that blocks a thread.
func waitForFiles() {
	r, w, err := os.Pipe()
	if err != nil {
		panic(err)
	}
	pipes = append(pipes, r, w)
	start(func() { b := make([]byte, 1); r.Read(b) })
	var raw [2]int
	if err := syscall.Pipe(raw[:]); err != nil {
		panic(err)
	}
	start(func() { b := make([]byte, 1); syscall.Read(raw[0], b) })
}

func waitWithLabels() {
	for i := 0; i < 4; i++ {
		labels := pprof.Labels("request", strconv.Itoa(i%2), "kind", "label value")
		pprof.Do(context.Background(), labels, func(context.Context) {
			start(func() { receive(never) })
		})
	}
	var many []string
	for i := 0; i < 20; i++ {
		many = append(many, "key"+strconv.Itoa(i), "value"+strconv.Itoa(i))
	}
	pprof.Do(context.Background(), pprof.Labels(many...), func(context.Context) {
		start(func() { receive(never) })
	})
}

// settle returns when all goroutines wait that have been started; of very many it looks at the first.
func settle() {
	text := make([]byte, 1<<20)
	for {
		n := runtime.Stack(text, true)
		if bytes.Count(text[:n], []byte(" [runn")) == 1 {
			return
		}
		time.Sleep(time.Millisecond)
	}
}

func leak(n int) {
	for i := 0; i < n; i++ {
		go receive(never)
	}
}

// Two chains of calls, so that a stack that has both was never one.
//
//go:noinline
func chainA(n int) int {
	if n == 0 {
		runtime.Gosched()
		return 1
	}
	return chainA(n-1) + 1
}

//go:noinline
func chainB(n int) int {
	var room [3]int
	room[n%3] = n
	if n == 0 {
		runtime.Gosched()
		return room[1]
	}
	return chainB(n-1) + room[n%3]
}

func move() {
	for i := 0; ; i++ {
		chainA(i % 13)
		chainB(i % 11)
	}
}

func churn() {
	for i := 0; i < 100; i++ {
		go move()
	}
	for {
		for i := 0; i < 100; i++ {
			ch := make(chan int)
			go func() { sink = deep(i%30, ch) }()
			go func() { time.Sleep(20 * time.Millisecond); ch <- 1 }()
		}
		atomic.AddUint64(&made, 200)
		time.Sleep(10 * time.Millisecond)
	}
}

//go:noinline
func abandon(runs chan bool) {
	runtime.SetFinalizer(new([64]int), func(*[64]int) {
		close(runs)
		receive(never)
	})
}

// finalize returns when a finalizer runs: the runtime's goroutine for them is one of the program's then.
func finalize() {
	runs := make(chan bool)
	abandon(runs)
	for {
		runtime.GC()
		select {
		case <-runs:
			return
		case <-time.After(10 * time.Millisecond):
		}
	}
}

func spin() {
	for {
		spun++
	}
}

func write(path, profile string, debug int) {
	f, err := os.Create(path)
	if err != nil {
		panic(err)
	}
	if err := pprof.Lookup(profile).WriteTo(f, debug); err != nil {
		panic(err)
	}
	f.Close()
}

func number(text string) int {
	n, _ := strconv.Atoi(text)
	return n
}

func command(name, argument string) bool {
	switch name {
	case "dump":
		write(rig.Out+".goroutine.pb.gz", "goroutine", 0)
		write(rig.Out+".1.txt", "goroutine", 1)
		write(rig.Out+".2.txt", "goroutine", 2)
		rig.Reply("dumped")
	case "leak":
		leak(number(argument))
		settle()
		rig.Reply("leaked")
	case "ways":
		for i := 0; i < number(argument); i++ {
			i := i
			start(func() { sink = way(i, 16, never) })
		}
		settle()
		rig.Reply("waiting")
	case "churn":
		go churn()
		rig.Reply("churning")
	case "made":
		rig.ReplyNumber("made", atomic.LoadUint64(&made))
	case "spin":
		go spin()
		go spin()
		rig.Reply("spinning")
	case "finalize":
		finalize()
		settle()
		rig.Reply("waiting")
	case "gc":
		runtime.GC()
		runtime.GC()
		rig.Reply("collected")
	default:
		return false
	}
	return true
}

func main() {
	mutex.Lock()
	rw.Lock()
	group.Add(1)
	waitMany()
	waitMore()
	waitForFiles()
	waitWithLabels()
	for i, arg := range os.Args {
		if arg == "-n" && i+1 < len(os.Args) {
			for k := 0; k < number(os.Args[i+1]); k++ {
				start(func() { receive(never) })
			}
		}
	}
	ready.Wait()
	settle()
	rig.Ready()
	for {
		line := rig.Next()
		if line == nil {
			return
		}
		name, argument := string(line), ""
		if i := strings.IndexByte(name, ' '); i >= 0 {
			name, argument = name[:i], name[i+1:]
		}
		if !command(name, argument) {
			rig.Reply("unknown command")
		}
	}
}
