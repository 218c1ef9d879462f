package tandem

import (
	"encoding/binary"
	"slices"
	"sync"

	"example.com/tandem/api"
	"example.com/tandem/api/gpu"
	"example.com/tandem/api/num"
	"example.com/tandem/hw/hwtest"
)

// params are the kernels' parameters.
func params() []gpu.Param {
	var a gpu.Args
	a.Ptr(0).Ptr(0).Uint64(0).Uint64(0).Uint64(0)
	for range 8 {
		a.Uint32(0)
	}
	a.Struct(make([]byte, nearBytes), 8).Struct(make([]byte, 8*inlineWords), 8).Struct(make([]byte, teamBytes), 8)
	return slices.Clone(a.Spans())
}

// emulator does in Go what the kernels do, one call at a time, once all ranks
// have come to it.
type emulator struct {
	mu    sync.Mutex
	types map[uint64]meaning
	queue map[gpu.Ptr][]arrival // by control page of a rank
	grids []int                 // blocks of a rank in each call
}

type meaning struct {
	d api.DType
	s num.Scheme
}

type arrival struct {
	args []uint64
	raw  []byte
}

func newEmulator() (*emulator, *hwtest.Driver) {
	return newEmulatorOn(1)
}

func newEmulatorOn(gpus int) (*emulator, *hwtest.Driver) {
	e := &emulator{types: map[uint64]meaning{}, queue: map[gpu.Ptr][]arrival{}}
	for _, d := range api.DTypes() {
		for _, s := range schemes(d) {
			if s.Op != api.NoOp {
				e.types[typeWord(d, s)] = meaning{d, s}
			}
		}
	}
	drv := hwtest.New(gpus)
	drv.Params = params()
	drv.Kernels = map[string]hwtest.Kernel{}
	for _, name := range kernelNames {
		drv.Kernels[name] = e.launch
	}
	return e, drv
}

// schemes are all that a type can be reduced by.
func schemes(d api.DType) []num.Scheme {
	out := []num.Scheme{{}}
	for _, op := range api.Ops() {
		for _, acc := range []num.Acc{num.AccElement, num.AccF32} {
			for _, avg := range []num.AvgRule{num.AvgDivide, num.AvgPremul} {
				for _, nan := range []num.MinMaxRule{num.DropNaN, num.PropagateNaN} {
					if op.ValidFor(d) && (acc == num.AccElement || d.Float() && d != api.F64) {
						out = append(out, num.Scheme{Op: op, Order: num.Balanced, Acc: acc, Avg: avg, MinMax: nan})
					}
				}
			}
		}
	}
	return out
}

func (e *emulator) launch(d *hwtest.Driver, _ int, l gpu.Launch) {
	e.mu.Lock()
	defer e.mu.Unlock()
	b := l.Args.Bytes()
	le := binary.LittleEndian
	var args []uint64
	for i, s := range l.Args.Spans() {
		switch {
		case i < 5:
			args = append(args, le.Uint64(b[s.Offset:]))
		case s.Size == 4:
			args = append(args, uint64(le.Uint32(b[s.Offset:])))
		}
	}
	raw := b[l.Args.Spans()[14].Offset:]
	table := d.Bytes(gpu.Ptr(args[0]))
	page := d.Bytes(gpu.Ptr(args[0]) - pageTable)
	if le.Uint64(page[pageGeneration:]) != args[2] {
		return
	}
	world := int(le.Uint32(table[tableWorld:]))
	blocks := int(args[7])
	groups := int(l.Grid.X) / blocks
	if int(l.Grid.X) != blocks*groups || !l.Cooperative && groups > 1 || l.Block.X != threads {
		panic("a grid that is not blocks times ranks")
	}
	if args[1] != 0 {
		raw = d.Bytes(gpu.Ptr(args[1]))
	}
	for g := range groups {
		rank := le.Uint32(table[tableLocal+4*g:])
		own := gpu.Ptr(le.Uint64(table[tablePages+8*rank:]))
		e.queue[own] = append(e.queue[own], arrival{args, slices.Clone(raw)})
	}
	e.grids = append(e.grids, blocks)
	for {
		var heads []arrival
		for r := range world {
			own := gpu.Ptr(le.Uint64(table[tablePages+8*r:]))
			if len(e.queue[own]) == 0 {
				return
			}
			heads = append(heads, e.queue[own][0])
		}
		for r := range world {
			own := gpu.Ptr(le.Uint64(table[tablePages+8*r:]))
			e.queue[own] = e.queue[own][1:]
		}
		e.call(d, world, heads[0])
	}
}

// call is the comments of the kernels, run.
func (e *emulator) call(d *hwtest.Driver, world int, a arrival) {
	collective, lanes, root := a.args[5], int(a.args[8]), int(a.args[9])
	word := func(i int) uint64 { return binary.LittleEndian.Uint64(a.raw[8*i:]) }
	for lane := range lanes {
		at := lane * (2 + 2*world)
		count, m := int(word(at)), e.types[word(at+1)]
		if collective > kernelReduceScatter {
			m.d = []api.DType{api.U8, api.U16, api.U32, api.U64}[word(at+1)&0xff]
		}
		size := m.d.Size()
		in := make([][]byte, world)
		for r := range world {
			n := count * size
			if collective == kernelReduceScatter || collective == kernelAllToAll {
				n *= world
			}
			if n > 0 {
				in[r] = slices.Clone(d.Bytes(gpu.Ptr(word(at + 2 + r)))[:n])
			}
		}
		for rank := range world {
			for i := range count {
				load := func(p, block int) uint64 { return num.Load(m.d, in[p][(block*count+i)*size:]) }
				store := func(block int, v uint64) {
					num.Store(m.d, d.Bytes(gpu.Ptr(word(at + 2 + world + rank)))[(block*count+i)*size:], v)
				}
				var all []uint64
				for p := range world {
					switch collective {
					case kernelAllReduce:
						all = append(all, load(p, 0))
					case kernelReduceScatter:
						all = append(all, load(p, rank))
					case kernelAllGather:
						store(p, load(p, 0))
					case kernelAllToAll:
						store(p, load(p, rank))
					case kernelBroadcast:
						store(0, load(root, 0))
					}
				}
				if all != nil {
					store(0, num.Eval(m.d, m.s, all))
				}
			}
		}
	}
}
