package conformance

import "math/bits"

// bitset has one bit an element. A nil bitset is empty.
type bitset []uint64

func newBitset(n int64) bitset { return make(bitset, (n+63)/64) }

func (b bitset) has(i int64) bool {
	return b != nil && b[i>>6]>>(i&63)&1 == 1
}

func (b bitset) set(i int64) { b[i>>6] |= 1 << (i & 63) }

// word is the bits of elements 64i to 64i+63.
func (b bitset) word(i int64) uint64 {
	if b == nil {
		return 0
	}
	return b[i]
}

// setRange sets start to end-1.
func (b bitset) setRange(start, end int64) {
	for ; start < end && start&63 != 0; start++ {
		b.set(start)
	}
	for ; start+64 <= end; start += 64 {
		b[start>>6] = ^uint64(0)
	}
	for ; start < end; start++ {
		b.set(start)
	}
}

// clearRange clears start to end-1.
func (b bitset) clearRange(start, end int64) {
	for ; start < end && start&63 != 0; start++ {
		b[start>>6] &^= 1 << (start & 63)
	}
	for ; start+64 <= end; start += 64 {
		b[start>>6] = 0
	}
	for ; start < end; start++ {
		b[start>>6] &^= 1 << (start & 63)
	}
}

func (b bitset) count() int64 {
	n := 0
	for _, w := range b {
		n += bits.OnesCount64(w)
	}
	return int64(n)
}

// each calls f for every set bit, in order.
func (b bitset) each(f func(i int64)) {
	for i, w := range b {
		for ; w != 0; w &= w - 1 {
			f(int64(i)<<6 + int64(bits.TrailingZeros64(w)))
		}
	}
}
