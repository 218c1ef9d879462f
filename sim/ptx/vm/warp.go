package vm

import "example.com/tandem/sim/ptx/asm"

// redux is a reduction of integers over the threads of a mask.
func (c *compiler) redux(in *instr) {
	c.one("sync")
	op := c.one("add", "min", "max", "and", "or", "xor")
	var t asm.Type
	if logic[op] != nil {
		t = c.typed(asm.B32)
	} else {
		t = c.typed(asm.U32, asm.S32)
	}
	c.end(3)
	in.kind, in.sync = kWarp, &sync{warp: true}
	in.dst, in.mask = c.dest(c.args[0], 4)
	in.a, in.b = c.value(c.args[1], t), c.value(c.args[2], asm.B32)
	less, _ := compare("lt", t)
	join := func(x, y uint64) uint64 {
		switch {
		case op == "add":
			return (x + y) & mask(t)
		case logic[op] != nil:
			return logic[op](x, y)
		case less(y, x) == (op == "min"):
			return y
		}
		return x
	}
	in.sync.join = func(came []*thread) {
		v := came[0].value(&came[0].at().a)
		for _, t := range came[1:] {
			v = join(v, t.value(&t.at().a))
		}
		for _, t := range came {
			t.write(t.at().dst, v&mask(asm.B32))
		}
	}
}

// match says which threads of a mask have the same value: any gives each thread
// those that have its own, all gives the mask if all have one.
func (c *compiler) match(in *instr) {
	all := c.one("any", "all") == "all"
	c.one("sync")
	t := c.typed(asm.B32, asm.B64)
	c.end(3)
	in.kind, in.sync = kWarp, &sync{warp: true}
	d := c.args[0]
	if d.Kind == asm.Pair && all {
		in.dst2, _ = c.dest(d.List[1], 0)
		d = d.List[0]
	}
	in.dst, in.mask = c.dest(d, 4)
	in.a, in.b = c.value(c.args[1], t), c.value(c.args[2], asm.B32)
	in.sync.join = func(came []*thread) {
		same := map[uint64]uint64{}
		for _, x := range came {
			same[x.value(&x.at().a)&mask(t)] |= 1 << x.lane()
		}
		for _, x := range came {
			v := same[x.value(&x.at().a)&mask(t)]
			if all && len(same) > 1 {
				v = 0
			}
			x.write(x.at().dst, v)
			if x.at().dst2 >= 0 {
				x.regs[x.at().dst2] = flag(v != 0)
			}
		}
	}
}
