package main

import (
	"context"
	"io"
	"sync"
	"time"
)

const moment = 200 * time.Microsecond

func waits() {
	contend(3, 6)
	ping(10)
	selects(5)
	readers(4)
	conditions(4)
	inlined(6)
	deep(300, 2)
	deepInlined(90)
	through(lockers())
	wrapped()
	panics()
}

// contend has n goroutines fight for one lock.
//
//go:noinline
func contend(n, rounds int) {
	var mu sync.Mutex
	var wg sync.WaitGroup

	for i := 0; i < n; i++ {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for k := 0; k < rounds; k++ {
				mu.Lock()
				time.Sleep(moment)
				mu.Unlock()
			}
		}()
	}
	wg.Wait()
}

//go:noinline
func ping(n int) {
	c, done := make(chan int), make(chan bool)

	go func() {
		for range c {
			time.Sleep(moment)
		}
		done <- true
	}()
	for i := 0; i < n; i++ {
		c <- i
	}
	close(c)
	<-done
}

//go:noinline
func selects(n int) {
	a, b, quit := make(chan int), make(chan string), make(chan bool)

	go func() {
		for i := 0; i < n; i++ {
			time.Sleep(moment)
			if i%2 == 0 {
				a <- i
			} else {
				b <- ""
			}
		}
		close(quit)
	}()
	for {
		select {
		case <-a:
		case <-b:
		case <-quit:
			return
		}
	}
}

//go:noinline
func readers(n int) {
	var mu sync.RWMutex
	var wg sync.WaitGroup

	for i := 0; i < n; i++ {
		i := i
		wg.Add(1)
		go func() {
			defer wg.Done()
			if i%2 == 0 {
				mu.RLock()
				defer mu.RUnlock()
			} else {
				mu.Lock()
				defer mu.Unlock()
			}
			time.Sleep(moment)
		}()
	}
	wg.Wait()
}

//go:noinline
func conditions(n int) {
	var mu sync.Mutex
	var wg sync.WaitGroup
	cond := sync.NewCond(&mu)
	ready := 0

	for i := 0; i < n; i++ {
		wg.Add(1)
		go func() {
			defer wg.Done()
			mu.Lock()
			defer mu.Unlock()
			ready++
			cond.Wait()
		}()
	}
	for {
		mu.Lock()
		if ready == n {
			cond.Broadcast()
			mu.Unlock()
			break
		}
		mu.Unlock()
		time.Sleep(moment)
	}
	wg.Wait()
}

// Calls that the compiler inlines, between those that wait and at the end of the stack.

func receive(c chan int) int           { return <-c }
func receiveTwice(c chan int) int      { return receive(c) + receive(c) }
func receiveFour(c chan int) int       { return receiveTwice(c) + receiveTwice(c) }
func guarded(mu *sync.Mutex, f func()) { mu.Lock(); f(); mu.Unlock() }

//go:noinline
func inlined(n int) {
	c := make(chan int)
	var mu sync.Mutex
	var wg sync.WaitGroup

	go func() {
		for i := 0; i < 4*n; i++ {
			time.Sleep(moment / 4)
			c <- i
		}
	}()
	for i := 0; i < n; i++ {
		receiveFour(c)
	}
	for i := 0; i < n; i++ {
		wg.Add(1)
		go func() {
			guarded(&mu, func() { time.Sleep(moment) })
			wg.Done()
		}()
	}
	wg.Wait()
}

// deep waits below more frames than any profile keeps.
//
//go:noinline
func deep(frames, n int) {
	if frames > 0 {
		deep(frames-1, n)
		return
	}
	ping(n)
}

// Each physical frame of this recursion stands for three.
func step(n int)  { stair(n) }
func stair(n int) { deepInlined(n - 1) }

//go:noinline
func deepInlined(n int) {
	if n == 0 {
		ping(2)
		contend(2, 2)
		return
	}
	step(n)
}

// Interfaces: methods are reached through wrappers that profiles leave out.

type base struct{ mu sync.Mutex }

func (b base) hold(d time.Duration) { time.Sleep(d) }

type derived struct{ *base }

type holder interface {
	Lock()
	Unlock()
}

func (b *base) Lock()   { b.mu.Lock() }
func (b *base) Unlock() { b.mu.Unlock() }

func lockers() []holder {
	b := &base{}
	return []holder{derived{b}, &derived{b}, b, &sync.Mutex{}}
}

//go:noinline
func through(list []holder) {
	var wg sync.WaitGroup

	for _, l := range list {
		for i := 0; i < 2; i++ {
			wg.Add(1)
			go func(l holder) {
				l.Lock()
				time.Sleep(moment)
				l.Unlock()
				wg.Done()
			}(l)
		}
	}
	wg.Wait()
}

//go:noinline
func wrapped() {
	r, w := io.Pipe()
	ctx, cancel := context.WithTimeout(context.Background(), 2*moment)

	defer cancel()
	go func() {
		time.Sleep(moment)
		w.Write([]byte("x"))
		w.Close()
	}()
	io.ReadAll(r)
	<-ctx.Done()
	new(base).hold(0)
}

//go:noinline
func panics() {
	c := make(chan int)

	defer func() {
		recover()
		go func() { time.Sleep(moment); c <- 1 }()
		<-c
	}()
	var p *base
	p.mu.Lock()
}
