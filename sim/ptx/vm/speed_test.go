package vm_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/tandem/api/gpu"
	"example.com/tandem/sim/ptx/vm"
)

// sweep is what collectives do: 16-byte loads of two vectors, adds, a store.
const sweep = `mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x; mad.lo.s32 %r1, %r2, 256, %r1; mov.u32 %r9, 0;
	mul.wide.u32 %rd1, %r1, 16; add.s64 %rd2, %x, %rd1; add.s64 %rd3, %y, %rd1; add.s64 %rd4, %out, %rd1;
L:	ld.global.v4.b32 {%r2, %r3, %r4, %r5}, [%rd2]; ld.global.v4.b32 {%r6, %r7, %r8, %r10}, [%rd3];
	add.rn.bf16x2 %r2, %r2, %r6; add.rn.bf16x2 %r3, %r3, %r7; add.rn.bf16x2 %r4, %r4, %r8; add.rn.bf16x2 %r5, %r5, %r10;
	st.global.v4.b32 [%rd4], {%r2, %r3, %r4, %r5};
	add.s64 %rd2, %rd2, 16384; add.s64 %rd3, %rd3, 16384; add.s64 %rd4, %rd4, 16384; add.u32 %r9, %r9, 1;
	setp.lt.u32 %p1, %r9, 16; @%p1 bra L;`

// BenchmarkExecute is thread-instructions of such a loop, race rules included.
func BenchmarkExecute(b *testing.B) {
	mod, err := vm.Load("sweep.ptx", []byte(head+kernel("k", sweep)))
	require.NoError(b, err)
	steps := uint64(0)
	for b.Loop() {
		m := vm.New(vm.Options{Seed: 1})
		var at [3]uint64
		for i := range at {
			at[i] = m.Place(&vm.Region{Bytes: 1 << 18, Store: vm.NewStore(1<<18, 0, true)})
		}
		l := m.Start(vm.Work{Kernel: mod.Kernel("k"), Grid: gpu.Dim3{X: 4}, Block: gpu.Dim3{X: 256}, Args: new(gpu.Args).Uint64(at[0]).Uint64(at[1]).Uint64(at[2]).Uint64(0).Bytes(), Seq: 1})
		m.Run(1 << 40)
		done, fault := l.Done()
		require.True(b, done && fault == nil)
		steps += m.Steps
	}
	b.ReportMetric(float64(steps)/b.Elapsed().Seconds()/1e6, "Minstr/s")
}

// TestSeed: one seed is one execution, to the number of instructions, and
// others differ.
func TestSeed(t *testing.T) {
	g := rig{bodies: []string{"st.relaxed.sys.b32 [%x], 1; ld.relaxed.sys.b32 %r1, [%y]; st.b32 [%out], %r1;", "st.relaxed.sys.b32 [%y], 1; ld.relaxed.sys.b32 %r1, [%x]; st.b32 [%out], %r1;"}, init: true}
	mod := g.module(t)
	all := ""
	for seed := range uint64(40) {
		one, _ := g.run(t, mod, seed)
		again, _ := g.run(t, mod, seed)
		require.Equal(t, one, again)
		all += one + ";"
	}
	require.Equal(t, schedule40, all, "the schedules of these seeds, on every architecture")
}

const schedule40 = "1.0=1;;1.0=1;0.0=1;0.0=1;0.0=1;1.0=1;0.0=1;0.0=1;0.0=1;0.0=1;1.0=1;1.0=1;0.0=1;0.0=1 1.0=1;0.0=1;0.0=1;0.0=1;1.0=1;0.0=1;;" +
	"0.0=1 1.0=1;0.0=1;0.0=1;0.0=1;1.0=1;0.0=1 1.0=1;0.0=1;1.0=1;0.0=1;0.0=1 1.0=1;0.0=1;;0.0=1;;0.0=1;0.0=1 1.0=1;0.0=1;1.0=1;1.0=1;"
