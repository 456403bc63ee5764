package work

// Call stacks by the hundred: every path through a tree of choices is one of its own.

type node struct {
	left, right *node
	payload     [3]uint64
}

var (
	nodes     []*node
	deepNodes []*node
)

// Allocated while the package is initialised, before main.main.
var (
	initTable  = buildTable(64)
	initSlice  = make([]*node, 128)
	initString = string(make([]byte, 77))
)

func buildTable(n int) map[int]*node {
	m := make(map[int]*node)
	for i := 0; i < n; i++ {
		m[i] = new(node)
	}
	return m
}

func init() {
	for i := range initSlice {
		initSlice[i] = &node{}
	}
}

// 3 to the 5th leaves, times the two allocations of a leaf: 486 stacks.
func paths() {
	for i := 0; i < 243; i++ {
		nodes = append(nodes, pathLeft(i, 5))
	}
}

//go:noinline
func pathLeft(choice, depth int) *node {
	return step(choice, depth)
}

//go:noinline
func pathMiddle(choice, depth int) *node {
	n := step(choice, depth)
	return n
}

//go:noinline
func pathRight(choice, depth int) *node {
	n := step(choice, depth)
	if n == nil {
		return &node{}
	}
	return n
}

//go:noinline
func step(choice, depth int) *node {
	if depth == 0 {
		return leaf()
	}
	switch choice % 3 {
	case 0:
		return pathLeft(choice/3, depth-1)
	case 1:
		return pathMiddle(choice/3, depth-1)
	}
	return pathRight(choice/3, depth-1)
}

//go:noinline
func leaf() *node {
	n := &node{}
	n.left = &node{payload: [3]uint64{1, 2, 3}}
	return n
}

// deep allocates at every level of a recursion that is deeper than any stack the runtime records.
//
//go:noinline
func deep(level int) int {
	if level == 0 {
		return 0
	}
	deepNodes = append(deepNodes, &node{})
	return deep(level-1) + 1
}
