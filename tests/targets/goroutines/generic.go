//go:build go1.18

package main

type box[T any] struct{ v T }

//go:noinline
func (b box[T]) wait(ch chan int) T {
	receive(ch)
	return b.v
}

func twice[A, B any](a A, b B, ch chan int) (A, B) {
	return box[A]{a}.wait(ch), box[B]{b}.wait(ch)
}

func waitMore() {
	start(func() { twice(1, "two", never) })
	start(func() { twice(value{3}, []int{4}, never) })
}
