package work

// Calls that the compiler inlines: at the leaf, in the middle, several levels deep, and across a
// call that stays.

type pair struct{ a, b *int }

var (
	inlinedPairs []*pair
	inlinedInts  []*int
)

func newInt(v int) *int           { p := new(int); *p = v + 1<<20; return p }
func newPair(v int) *pair         { return &pair{newInt(v), newInt(v + 1)} }
func wrapPair(v int) *pair        { return newPair(v * 2) }
func wrapPairAgain(v int) *pair   { return wrapPair(v + 3) }
func addPair(v int)               { inlinedPairs = append(inlinedPairs, wrapPairAgain(v)) }
func addPairTwice(v int)          { addPair(v); addPair(v + 1) }
func throughCall(f int) (p *pair) { return opaquePair(f) }

//go:noinline
func opaquePair(v int) *pair { return wrapPairAgain(v) }

//go:noinline
func inlinedAtLeaf(v int) *int { return newInt(v) }

//go:noinline
func inlinedInLoop(n int) {
	for i := 0; i < n; i++ {
		addPairTwice(i)
		inlinedPairs = append(inlinedPairs, throughCall(i))
		if i%2 == 0 {
			addPair(i)
		} else {
			inlinedInts = append(inlinedInts, newInt(i))
		}
	}
}

type builder struct{ parts []*pair }

func (b *builder) add(v int) *builder   { b.parts = append(b.parts, newPair(v)); return b }
func (b *builder) twice(v int) *builder { return b.add(v).add(v + 1) }

var builders []*builder

func inlined() {
	inlinedInLoop(20)
	inlinedInts = append(inlinedInts, inlinedAtLeaf(1), newInt(2), newInt(3))
	builders = append(builders, new(builder).twice(1).add(2).twice(3))
	func() {
		inlinedInts = append(inlinedInts, newInt(4))
	}()
}
