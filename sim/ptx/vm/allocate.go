package vm

import (
	"cmp"
	"math/bits"
	"slices"
)

// set is a set of registers.
type set []uint64

func (s set) has(r int32) bool { return s[r/64]>>(r%64)&1 != 0 }
func (s set) put(r int32)      { s[r/64] |= 1 << (r % 64) }
func (s set) drop(r int32)     { s[r/64] &^= 1 << (r % 64) }

// run is a basic block: code[lo:hi].
type run struct {
	lo, hi  int
	next    []int
	in, out set
	seen    bool
}

// blocks cuts code into basic blocks.
func blocks(code []instr) []*run {
	starts := map[int]bool{0: true}
	for i := range code {
		in := &code[i]
		switch in.kind {
		case kBra:
			starts[int(in.target)], starts[i+1] = true, true
		case kTable:
			for _, t := range in.table {
				starts[int(t)] = true
			}
			starts[i+1] = true
		case kExit, kTrap, kAssert:
			starts[i+1] = true
		}
	}
	var at []int
	for i := range len(code) {
		if starts[i] {
			at = append(at, i)
		}
	}
	number := make(map[int]int, len(at))
	for i, s := range at {
		number[s] = i
	}
	all := make([]*run, len(at))
	for i, s := range at {
		b := &run{lo: s, hi: len(code)}
		if i+1 < len(at) {
			b.hi = at[i+1]
		}
		last := &code[b.hi-1]
		switch last.kind {
		case kBra:
			b.next = append(b.next, number[int(last.target)])
		case kTable:
			for _, t := range last.table {
				b.next = append(b.next, number[int(t)])
			}
		}
		ends := last.kind == kBra || last.kind == kTable || last.kind == kExit || last.kind == kTrap
		if b.hi < len(code) && (!ends || last.guard >= 0) {
			b.next = append(b.next, number[b.hi])
		}
		all[i] = b
	}
	return all
}

// allocate maps the registers of a kernel, of which a compiler uses thousands,
// each briefly, to few slots: two share one if they are never live at once. A
// register that may be read before it is written has its slot from the start.
func allocate(k *Kernel, regs int) {
	words := (regs + 63) / 64
	all := blocks(k.code)
	for _, b := range all {
		b.in, b.out = make(set, words), make(set, words)
	}
	back := func(b *run, live set, visit func(at int, r int32)) {
		for i := b.hi - 1; i >= b.lo; i-- {
			in := &k.code[i]
			in.registers(func(*int32) {}, func(r *int32) {
				visit(i, *r)
				if in.guard < 0 {
					live.drop(*r)
				}
			})
			in.registers(func(r *int32) { live.put(*r); visit(i, *r) }, func(*int32) {})
		}
	}
	live := make(set, words)
	for changed := true; changed; {
		changed = false
		for _, b := range slices.Backward(all) {
			clear(live)
			for _, n := range b.next {
				for w := range live {
					live[w] |= all[n].in[w]
				}
			}
			if b.seen && slices.Equal(live, b.out) {
				continue
			}
			b.seen = true
			copy(b.out, live)
			back(b, live, func(int, int32) {})
			if !slices.Equal(live, b.in) {
				copy(b.in, live)
				changed = true
			}
		}
	}
	type span struct {
		r      int32
		lo, hi int
	}
	spans := make([]span, regs)
	for r := range spans {
		spans[r] = span{int32(r), len(k.code), -1}
	}
	touch := func(at int, r int32) {
		spans[r].lo, spans[r].hi = min(spans[r].lo, at), max(spans[r].hi, at)
	}
	each := func(s set, at int) {
		for w, v := range s {
			for ; v != 0; v &= v - 1 {
				touch(at, int32(64*w+bits.TrailingZeros64(v)))
			}
		}
	}
	for _, b := range all {
		copy(live, b.out)
		back(b, live, touch)
		each(b.in, b.lo)
		each(b.out, b.hi-1)
	}
	each(all[0].in, -1)
	spans = slices.DeleteFunc(spans, func(s span) bool { return s.hi < 0 && s.lo == len(k.code) })
	slices.SortFunc(spans, func(a, b span) int { return cmp.Or(cmp.Compare(a.lo, b.lo), cmp.Compare(a.r, b.r)) })
	slot := make([]int32, regs)
	var ends []int // by slot
	for _, s := range spans {
		at := slices.IndexFunc(ends, func(hi int) bool { return hi < s.lo })
		if at < 0 {
			at, ends = len(ends), append(ends, 0)
		}
		ends[at], slot[s.r] = s.hi, int32(at)
	}
	move := func(r *int32) { *r = slot[*r] }
	for i := range k.code {
		k.code[i].registers(move, move)
	}
	k.regs = max(len(ends), 1)
	k.Registers = min(max(k.regs, 16), 255)
}
