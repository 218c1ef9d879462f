package vm_test

import (
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/tandem/api/gpu"
	"example.com/tandem/sim/ptx/vm"
)

// TestAliasAcrossLaunches: a kernel stores through a multicast address and raises
// a flag; a kernel of another device awaits it and ends; what its stream does
// next reads the bytes by their own address. The end of the reader's kernel is
// no alias fence for the writer's accesses: both kernels need theirs, unless the
// stream waited for the writer's end too.
func TestAliasAcrossLaunches(t *testing.T) {
	const fence = "fence.proxy.alias;\n"
	for _, c := range []struct {
		name           string
		writer, reader string
		waits          bool // the stream waits for the writer's kernel
		raced          bool
	}{
		{"both fences", fence, fence, false, false},
		{"without the writer's", "", fence, false, true},
		{"without the reader's", fence, "", false, true},
		{"without either", "", "", false, true},
		{"without either, and the writer done", "", "", true, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			mod := rig{bodies: []string{
				"multimem.st.relaxed.sys.global.b32 [%mc], 3;\n" + c.writer + "st.release.sys.b32 [%y], 1;",
				await + c.reader,
				"ld.b32 %r2, [%x]; st.b32 [%out], %r2;",
			}}.module(t)
			for seed := range uint64(20) {
				for _, copied := range []bool{false, true} {
					got, fault := next(t, mod, seed, c.waits, copied)
					if c.raced {
						require.NotNil(t, fault, "copied %v", copied)
						require.True(t, fault.Race)
						continue
					}
					require.Nil(t, fault, "copied %v", copied)
					require.EqualValues(t, 3, got)
				}
			}
		})
	}
}

// next runs kernels 0 and 1 on a device each, and then on the second one kernel 2
// or a copy, which give the value of x.
func next(t *testing.T, mod *vm.Module, seed uint64, waits, copied bool) (uint32, *vm.Fault) {
	m := vm.New(vm.Options{Seed: seed})
	x, far := vm.NewStore(4096, 1, true), vm.NewStore(4096, 0, true)
	out := vm.NewStore(4096, 1, true)
	r := &vm.Region{Bytes: 4096, Store: x}
	at := m.Place(r)
	mc := m.Place(&vm.Region{Bytes: 4096, Parts: []*vm.Store{x, far}})
	outAt := m.Place(&vm.Region{Bytes: 4096, Store: out})
	var args gpu.Args
	args.Uint64(at).Uint64(at + 256).Uint64(outAt).Uint64(mc)
	start := func(name string, device int, seq uint32, known vm.Known) *vm.Launch {
		return m.Start(vm.Work{Kernel: mod.Kernel(name), Block: gpu.Dim3{X: 1}, Device: device, Args: args.Bytes(), Stream: uint32(device), Seq: seq, Known: known})
	}
	finish := func(l *vm.Launch) *vm.Fault {
		for range 10000 {
			m.Run(100)
			if done, fault := l.Done(); done {
				return fault
			}
		}
		t.Fatal("it hangs")
		return nil
	}
	writer := start("t0", 0, 1, vm.Known{})
	reader := start("t1", 1, 1, vm.Known{})
	if fault := finish(reader); fault != nil {
		return 0, fault
	}
	known := reader.Known()
	if waits {
		if fault := finish(writer); fault != nil {
			return 0, fault
		}
		known = known.Join(writer.Known())
	}
	if copied {
		return binary.LittleEndian.Uint32(x.Data), m.Agent(1, 1, 2, known).Read(r, 0, 4)
	}
	fault := finish(start("t2", 1, 2, known))
	return binary.LittleEndian.Uint32(out.Data), fault
}
