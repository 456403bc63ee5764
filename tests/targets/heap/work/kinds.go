package work

import (
	"fmt"
	"sort"
	"strings"
	"sync"
)

// Interfaces, embedding and method values: what the compiler makes wrapper functions for.

type maker interface {
	make(n int) []byte
	label() string
}

type base struct{ name string }

func (b base) label() string        { return b.name + "-label-that-does-not-fit-a-small-buffer" }
func (b *base) make(n int) []byte   { return make([]byte, n+1) }
func (b base) makeValue(n int) *int { p := new(int); *p = n + len(b.name); return p }

type derived struct {
	base
	extra int
}

type pointed struct {
	*base
	extra [4]int
}

type valueMaker struct{ n int }

func (v valueMaker) make(n int) []byte { return make([]byte, v.n+n) }
func (v valueMaker) label() string     { return strings.Repeat("v", v.n+40) }

var (
	bytesKept   [][]byte
	stringsKept []string
	makersKept  []maker
	intsKept    []*int
	anyKept     []interface{}
	funcsKept   []func(int) []byte
)

//go:noinline
func useMaker(m maker, n int) {
	bytesKept = append(bytesKept, m.make(n))
	stringsKept = append(stringsKept, m.label())
}

func interfaces() {
	d := &derived{base: base{"derived"}}
	p := pointed{base: &base{"pointed"}}
	makersKept = append(makersKept, d, p, &p, valueMaker{3}, &valueMaker{4}, &base{"plain"})
	for i, m := range makersKept {
		useMaker(m, 10*i)
	}
	for i := 0; i < 6; i++ {
		// An integer above 255 is boxed.
		anyKept = append(anyKept, 1000+i, fmt.Sprint("boxed", i), [2]int{i, i})
	}
}

func methodValues() {
	b := &base{"method"}
	f := b.make
	g := b.makeValue
	h := (*base).make
	k := base.makeValue
	m := maker.make
	funcsKept = append(funcsKept, f)
	for i := 0; i < 4; i++ {
		bytesKept = append(bytesKept, f(i), h(b, i+100), m(b, i+200))
		intsKept = append(intsKept, g(i), k(*b, i))
	}
}

func closures() {
	total := 0
	make1 := func(n int) []byte {
		total += n
		return make([]byte, n*3)
	}
	nested := func(n int) func() []byte {
		return func() []byte {
			return func(k int) []byte { return append(make1(k), make1(n)...) }(n + 1)
		}
	}
	funcsKept = append(funcsKept, make1)
	for i := 1; i < 5; i++ {
		bytesKept = append(bytesKept, make1(i), nested(i)())
	}
	words := []string{"c", "a", "b"}
	sort.Slice(words, func(i, j int) bool {
		stringsKept = append(stringsKept, words[i]+words[j])
		return words[i] < words[j]
	})
}

// goroutines allocate one after the other, so that every run has the same profile.
func goroutines() {
	results := make(chan []byte)
	for i := 0; i < 4; i++ {
		go worker(i, results)
		bytesKept = append(bytesKept, <-results)
	}
	for i := 0; i < 2; i++ {
		go func(n int) {
			results <- make([]byte, n*50+700)
		}(i)
		bytesKept = append(bytesKept, <-results)
	}
	var wg sync.WaitGroup
	wg.Add(1)
	go func() {
		defer wg.Done()
		bytesKept = append(bytesKept, make([]byte, 901))
	}()
	wg.Wait()
}

func worker(n int, results chan<- []byte) {
	b := make([]byte, n*10+300)
	results <- b
}

func defers() {
	for i := 0; i < 3; i++ {
		deferred(i)
	}
	recovered()
}

//go:noinline
func deferred(n int) {
	for i := 0; i <= n; i++ {
		defer func(k int) {
			bytesKept = append(bytesKept, make([]byte, 400+k))
		}(i)
	}
	defer keepDeferred(n)
}

func keepDeferred(n int) {
	bytesKept = append(bytesKept, make([]byte, 500+n))
}

func recovered() {
	defer func() {
		anyKept = append(anyKept, recover(), make([]byte, 611))
	}()
	var m map[string]*node
	m["absent"] = &node{}
}
