package arith

import "example.com/tandem/api/num"

// The kernels in assembly work in units of 16 elements; what is left of a range is
// done by the portable ones.
const unit = 16

// steps are the kernels that combine sources into accumulators. Any operand of a
// kernel may be its destination too.
type steps struct {
	// join is dst = a op b on accumulators.
	join func(dst, a, b []byte)
	// first is acc = srcs[0] op srcs[1] op ... from the left, for 1 to group
	// sources; it turns them into accumulators where these are wider.
	first func(acc []byte, srcs [][]byte)
	// more is dst = acc op srcs[0] op srcs[1] op ... for 1 to group-1 sources.
	more func(dst, acc []byte, srcs [][]byte)
	// last is more with its result rounded to nearest even into elements; acc may
	// be nil to start from srcs[0]. It may be nil.
	last func(dst, acc []byte, srcs [][]byte)
	// tree is acc = the balanced tree over 4 or 8 sources; it may be nil.
	tree func(acc []byte, srcs [][]byte)
	// treeStream is tree over 8 sources that copies from to to meanwhile, past the
	// caches, 8 bytes for every byte of one source. It takes whole units and a to
	// that lies at a multiple of 32; it may be nil.
	treeStream func(acc []byte, srcs [][]byte, to, from []byte)
	// group is how many sources a kernel takes at most, 2 or more.
	group int
	// anyOrder says that the order of the sources makes no difference.
	anyOrder bool
}

// pairwise makes steps of a single kernel on elements.
func pairwise(join func(dst, a, b []byte)) steps {
	return steps{
		join: join,
		first: func(acc []byte, srcs [][]byte) {
			if len(srcs) == 1 {
				copy(acc, srcs[0])
				return
			}
			join(acc, srcs[0], srcs[1])
		},
		more:  func(dst, acc []byte, srcs [][]byte) { join(dst, acc, srcs[0]) },
		group: 2,
	}
}

// widening makes steps of kernels on wider accumulators: widen turns elements into
// them, two starts with two sources, and is nil where that saves nothing, and add
// is dst = acc op src for one source.
func widening(join func(dst, a, b []byte), widen func(acc, src []byte), two, add func(dst, acc, src []byte)) steps {
	return steps{
		join: join,
		first: func(acc []byte, srcs [][]byte) {
			switch {
			case len(srcs) == 1:
				widen(acc, srcs[0])
			case two != nil:
				two(acc, srcs[0], srcs[1])
			default:
				widen(acc, srcs[0])
				add(acc, acc, srcs[1])
			}
		},
		more:  func(dst, acc []byte, srcs [][]byte) { add(dst, acc, srcs[0]) },
		group: 2,
	}
}

// bench is the working space of one worker: buffers of one tile each, which stay
// in the nearest caches.
type bench struct {
	*plan
	elements int
	bufs     [][]byte // of accumulators
	leaves   [][]byte // of elements
	terms    [][]byte // the sources at hand, prepared
	out      outflow  // what is on its way to the destinations
}

// buf is the accumulator buffer of a level of the tree.
func (b *bench) buf(level, bytes int) []byte {
	for len(b.bufs) <= level {
		b.bufs = append(b.bufs, make([]byte, b.elements*b.acc.Size()))
	}
	return b.bufs[level][:bytes]
}

// kernel is what reduces one tile.
func (b *bench) kernel() func(dst []byte, srcs [][]byte) {
	if b.plan.tiles != nil {
		return b.plan.tiles(b.elements)
	}
	return b.reduce
}

// reduce reduces one tile. dst, which may be a source, is written by the last
// kernel only.
func (b *bench) reduce(dst []byte, srcs [][]byte) {
	out, finish := dst, b.finish
	linear := b.fused == nil && (b.s.Order == num.Linear || b.steps.anyOrder || len(srcs) <= 3)
	if linear && b.narrow {
		finish = nil // the last kernel will do it
	}
	if finish != nil {
		out = b.buf(0, len(dst)/b.d.Size()*b.acc.Size())
	}
	if linear {
		b.linear(out, srcs)
	} else {
		b.balanced(out, srcs, 1)
	}
	if finish != nil {
		finish(dst, out)
	}
}

// prepared returns sources as they are to be combined, at most a group of them;
// the last answer is then no longer needed.
func (b *bench) prepared(srcs [][]byte) [][]byte {
	if b.prepare == nil {
		return srcs
	}
	b.terms = b.terms[:0]
	for i, src := range srcs {
		if i == len(b.leaves) {
			b.leaves = append(b.leaves, make([]byte, b.elements*b.d.Size()))
		}
		leaf := b.leaves[i][:len(src)]
		b.prepare(leaf, src)
		b.terms = append(b.terms, leaf)
	}
	return b.terms
}

// linear folds the sources from the left into out.
func (b *bench) linear(out []byte, srcs [][]byte) {
	last := b.steps.more
	if b.narrow {
		last = b.steps.last
	}
	n := min(b.steps.group, len(srcs))
	if n == len(srcs) {
		if b.narrow {
			last(out, nil, b.prepared(srcs))
		} else {
			b.steps.first(out, b.prepared(srcs))
		}
		return
	}
	acc := b.buf(1, len(out)/b.outSize()*b.acc.Size())
	b.steps.first(acc, b.prepared(srcs[:n]))
	for srcs = srcs[n:]; len(srcs) > b.steps.group-1; srcs = srcs[n:] {
		n = b.steps.group - 1
		b.steps.more(acc, acc, b.prepared(srcs[:n]))
	}
	last(out, acc, b.prepared(srcs))
}

// outSize is the size of what linear writes.
func (b *bench) outSize() int {
	if b.narrow {
		return b.d.Size()
	}
	return b.acc.Size()
}

// balanced combines the sources in their fixed tree into out; buffers from level
// on are free to use. Fused steps follow the scheme's order here as well.
func (b *bench) balanced(out []byte, srcs [][]byte, level int) {
	n := len(srcs)
	switch {
	case n == 1, b.fused == nil && n <= min(3, b.steps.group):
		b.steps.first(out, b.prepared(srcs)) // up to 3 the tree is linear
		return
	case b.fused == nil && b.steps.tree != nil && (n == 4 || n == 8):
		b.treeOf(out, b.prepared(srcs))
		return
	}
	at := n - 1
	if b.s.Order == num.Balanced {
		for at = 1; 2*at < n; {
			at *= 2
		}
	}
	left := b.buf(level, len(out))
	b.balanced(left, srcs[:at], level)
	if b.fused != nil && n-at == 1 {
		b.fused(out, left, srcs[at])
		return
	}
	right := b.buf(level+1, len(out))
	b.balanced(right, srcs[at:], level+1)
	b.steps.join(out, left, right)
}

// treeOf combines 4 or 8 sources, and sends on a part of the last tiles if that
// can be done at once.
func (b *bench) treeOf(out []byte, srcs [][]byte) {
	if len(srcs) == 8 && b.steps.treeStream != nil && len(out)%(unit*b.acc.Size()) == 0 {
		if to, from := b.out.next(8 * len(srcs[0])); to != nil {
			b.steps.treeStream(out, srcs, to, from)
			return
		}
	}
	b.steps.tree(out, srcs)
}
