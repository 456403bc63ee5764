//go:build go1.18

package work

// Generic functions and methods in several instantiations: by shape, by pointer, nested, inlined.

type number interface{ ~int | ~int32 | ~float64 }

type list[T any] struct {
	head *cell[T]
	len  int
}

type cell[T any] struct {
	value T
	next  *cell[T]
}

type table[K comparable, V any] struct {
	entries map[K]*V
	order   list[K]
}

type meters float64

//go:noinline
func (l *list[T]) push(v T) {
	l.head = &cell[T]{v, l.head}
	l.len++
}

func (l *list[T]) pushInlined(v T) { l.head = &cell[T]{v, l.head} }

func (l *list[T]) each(f func(T) []T) (all [][]T) {
	for c := l.head; c != nil; c = c.next {
		all = append(all, f(c.value))
	}
	return all
}

//go:noinline
func (t *table[K, V]) put(k K, v V) {
	if t.entries == nil {
		t.entries = make(map[K]*V)
	}
	copied := new(V)
	*copied = v
	t.entries[k] = copied
	t.order.push(k)
}

//go:noinline
func mapAll[A, B any](in []A, f func(A) B) []B {
	var out []B
	for _, a := range in {
		out = append(out, f(a))
	}
	return out
}

func single[T any](v T) []T { return []T{v} }

//go:noinline
func boxSum[T number](values ...T) *T {
	sum := new(T)
	for _, v := range values {
		*sum += v
	}
	return sum
}

var genericKept []interface{}

func generic() {
	ints, strs, nodes := &list[int]{}, &list[string]{}, &list[*node]{}
	pairs := &list[pair]{}
	byName := &table[string, node]{}
	byNumber := &table[int, list[string]]{}
	for i := 0; i < 5; i++ {
		ints.push(i)
		ints.pushInlined(i)
		strs.push("s")
		strs.pushInlined("t")
		nodes.push(&node{})
		pairs.push(*newPair(i))
		byName.put(string(rune('a'+i)), node{})
		byNumber.put(i, list[string]{})
	}
	genericKept = append(genericKept, ints, strs, nodes, pairs, byName, byNumber)
	genericKept = append(genericKept, ints.each(single[int]), strs.each(single[string]))
	genericKept = append(genericKept,
		mapAll([]int{1, 2, 3}, func(i int) *node { return &node{payload: [3]uint64{uint64(i)}} }),
		mapAll([]string{"a", "b"}, func(s string) list[string] { return list[string]{len: len(s)} }),
		mapAll([]*node{{}, {}}, func(n *node) *list[*node] { l := &list[*node]{}; l.push(n); return l }))
	genericKept = append(genericKept, boxSum(1, 2), boxSum(1.5), boxSum[int32](7), boxSum(meters(2)))
}
