package work

import (
	"bytes"
	"strconv"
	"strings"
)

// Objects of all sizes, with and without pointers, growing, living and dead.

var (
	mapsKept   []map[string]*node
	intMaps    []map[int]int
	chansKept  []chan [64]byte
	runesKept  [][]rune
	tinyKept   []*byte
	largeKept  [][]byte
	tablesKept [][]*node
)

func growth() {
	m := make(map[string]*node)
	im := make(map[int]int, 8)
	for i := 0; i < 300; i++ {
		m["key-"+strconv.Itoa(i)] = &node{}
		im[i*7] = i
	}
	for i := 0; i < 100; i++ {
		delete(m, "key-"+strconv.Itoa(i))
	}
	mapsKept = append(mapsKept, m, map[string]*node{"literal": {}, "another": {}})
	intMaps = append(intMaps, im)

	var s []*node
	var b []byte
	for i := 0; i < 3000; i++ {
		s = append(s, nil)
		b = append(b, byte(i), 1, 2)
	}
	tablesKept = append(tablesKept, s)
	largeKept = append(largeKept, b)

	text := ""
	for i := 0; i < 30; i++ {
		text += strconv.Itoa(i) + ","
	}
	var sb strings.Builder
	var bb bytes.Buffer
	for i := 0; i < 200; i++ {
		sb.WriteString(text)
		bb.WriteString(text)
	}
	stringsKept = append(stringsKept, text, sb.String(), bb.String(), strings.ToUpper(text))
	runesKept = append(runesKept, []rune(text))
	bytesKept = append(bytesKept, []byte(text))
	for i := 0; i < 4; i++ {
		chansKept = append(chansKept, make(chan [64]byte, i*5))
	}
}

func sizes() {
	for i := 0; i < 200; i++ {
		tiny := new(byte)
		*tiny = byte(i)
		tinyKept = append(tinyKept, tiny)
	}
	small()
	for i := 0; i < 3; i++ {
		largeKept = append(largeKept, make([]byte, 33<<10))
		largeKept = append(largeKept, make([]byte, 100<<10+i))
		largeKept = append(largeKept, make([]byte, 1<<20+4096*i))
		tablesKept = append(tablesKept, make([]*node, 5000))
		tablesKept = append(tablesKept, make([]*node, 200000))
	}
	largeKept = append(largeKept, make([]byte, 3<<20))
}

// One bucket per size class, from one call site.
func small() {
	for n := 8; n <= 32<<10; n += n/8 + 8 {
		bytesKept = append(bytesKept, make([]byte, n))
		if n < 4096 {
			tablesKept = append(tablesKept, make([]*node, n/8))
		}
	}
}

// garbage is dropped at once, or in part.
func garbage() {
	for i := 0; i < 500; i++ {
		dropped := dropAll(i)
		if i%10 == 0 {
			bytesKept = append(bytesKept, dropped)
		}
	}
	for i := 0; i < 50; i++ {
		_ = dropNodes(i)
	}
}

//go:noinline
func dropAll(n int) []byte { return make([]byte, 1000+n%3*100) }

//go:noinline
func dropNodes(n int) *node {
	head := &node{}
	for i := 0; i < n; i++ {
		head = &node{left: head}
	}
	return head
}
