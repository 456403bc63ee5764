// part is the plugin of the plugin target.
package main

var kept [][]byte

//go:noinline
func descend(n int) {
	if n > 0 {
		descend(n - 1)
		return
	}
	kept = append(kept, make([]byte, 777))
}

// Allocate is what the host calls.
func Allocate() {
	for i := 0; i < 50; i++ {
		descend(i % 7)
	}
}

func main() {}
