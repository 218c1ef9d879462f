package vm_test

import (
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/tandem/api/gpu"
	"example.com/tandem/sim/ptx/vm"
)

const head = ".version 8.4\n.target sm_90\n.address_size 64\n"

// regs are what every test kernel declares, and its parameters loaded.
const regs = `.reg .pred %p<8>; .reg .b16 %h<8>; .reg .b32 %r<16>; .reg .b64 %rd<8>; .reg .b64 %x, %y, %out, %mc; .reg .f32 %f<8>; .reg .f64 %fd<8>;
	ld.param.u64 %x, [x]; ld.param.u64 %y, [y]; ld.param.u64 %out, [out]; ld.param.u64 %mc, [mc];
`

// kernel is an entry with that body; results go to [%out], [%out+4], ...
func kernel(name, body string) string {
	return ".visible .entry " + name + "(.param .u64 x, .param .u64 y, .param .u64 out, .param .u64 mc)\n{\n" + regs + body + "\nret;\n}\n"
}

// rig runs one thread, or block, for each body, on a machine with two words x
// and y, a multicast address over x's memory, and four words of results each.
type rig struct {
	bodies  []string
	devices []int // of each body; nil is all on device 0
	threads uint32
	stale   int
	race    func(func() *vm.Fault) bool
	init    bool // x and y are 0 from the start; else never written
}

func (g rig) module(t testing.TB) *vm.Module {
	text := head
	for i, b := range g.bodies {
		text += kernel(fmt.Sprintf("t%d", i), b)
	}
	m, err := vm.Load("litmus.ptx", []byte(text))
	require.NoError(t, err)
	return m
}

// run gives the results of one schedule in words, or the fault.
func (g rig) run(t testing.TB, mod *vm.Module, seed uint64) (string, *vm.Fault) {
	m := vm.New(vm.Options{Seed: seed, Stale: g.stale, Race: g.race})
	store := vm.NewStore(4096, 0, g.init)
	at := m.Place(&vm.Region{Bytes: 4096, Store: store})
	far := vm.NewStore(4096, 1, g.init)
	mc := m.Place(&vm.Region{Bytes: 4096, Parts: []*vm.Store{store, far}})
	out := vm.NewStore(4096, 0, true)
	outAt := m.Place(&vm.Region{Bytes: 4096, Store: out})
	var launches []*vm.Launch
	for i := range g.bodies {
		var args gpu.Args
		args.Uint64(at).Uint64(at + 256).Uint64(outAt + uint64(16*i)).Uint64(mc)
		w := vm.Work{Kernel: mod.Kernel(fmt.Sprintf("t%d", i)), Block: gpu.Dim3{X: max(g.threads, 1)}, Args: args.Bytes(), Stream: uint32(i), Seq: 1}
		if g.devices != nil {
			w.Device = g.devices[i]
		}
		launches = append(launches, m.Start(w))
	}
	for range 10000 {
		if m.Run(1000) && !m.Running() {
			break
		}
	}
	for _, l := range launches {
		done, fault := l.Done()
		if fault != nil {
			return "", fault
		}
		require.True(t, done, "it hangs")
	}
	var all []string
	for i := range g.bodies {
		for k := range 4 {
			if v := binary.LittleEndian.Uint32(out.Data[16*i+4*k:]); v != 0 {
				all = append(all, fmt.Sprintf("%d.%d=%d", i, k, v))
			}
		}
	}
	return strings.Join(all, " "), nil
}

// outcomes are the results of many schedules, sorted; a race is "race".
func (g rig) outcomes(t testing.TB) []string {
	mod := g.module(t)
	seen := map[string]bool{}
	n := uint64(250)
	if testing.Short() {
		n = 200
	}
	for seed := range n {
		got, fault := g.run(t, mod, seed)
		if fault != nil {
			got = strings.SplitN(fault.What, ":", 2)[0]
		}
		seen[got] = true
	}
	return slices.Sorted(maps.Keys(seen))
}
