package vm_test

import (
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/tandem/api/gpu"
	"example.com/tandem/sim/ptx/vm"
)

// exchange is two blocks of two warps that exchange words through flags: half of
// the threads of each block write, a barrier, one thread tells and waits, and all
// read what the other block wrote. Floats are added on the way.
const exchange = `mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x; mad.lo.s32 %r3, %r2, 64, %r1;
	mul.wide.u32 %rd1, %r3, 4; add.s64 %rd2, %x, %rd1; cvt.rn.f32.u32 %f1, %r3; mul.rn.f32 %f1, %f1, 0f3E99999A; st.global.f32 [%rd2], %f1;
	bar.sync 0; setp.ne.u32 %p1, %r1, 0; @%p1 bra W;
	fence.acq_rel.gpu; mul.wide.u32 %rd3, %r2, 4; add.s64 %rd3, %y, %rd3; st.relaxed.gpu.global.b32 [%rd3], 1;
	xor.b32 %r4, %r2, 1; mul.wide.u32 %rd3, %r4, 4; add.s64 %rd3, %y, %rd3;
L:	ld.relaxed.gpu.global.b32 %r5, [%rd3]; setp.eq.u32 %p2, %r5, 0; @%p2 bra L;
	fence.acq_rel.gpu;
W:	bar.sync 0; xor.b32 %r3, %r3, 64; mul.wide.u32 %rd1, %r3, 4; add.s64 %rd2, %x, %rd1; ld.global.f32 %f2, [%rd2]; add.rn.f32 %f1, %f1, %f2;
	vote.sync.ballot.b32 %r6, %p1, -1; cvt.rn.f32.u32 %f3, %r6; fma.rn.f32 %f1, %f1, %f3, %f2;
	add.s64 %rd2, %out, %rd1; st.global.f32 [%rd2], %f1;`

// TestTrace: one seed is one execution, turn by turn and byte for byte, on every
// architecture. The constants are of amd64; CI runs the test on arm64 too.
func TestTrace(t *testing.T) {
	mod, err := vm.Load("exchange.ptx", []byte(head+kernel("k", exchange)))
	require.NoError(t, err)
	run := func(seed uint64) uint64 {
		h := uint64(fnvBasis)
		m := vm.New(vm.Options{Seed: seed, Trace: func(block uint32, thread, pc int32, executed int) {
			var b [16]byte
			binary.LittleEndian.PutUint32(b[:], block)
			binary.LittleEndian.PutUint32(b[4:], uint32(thread))
			binary.LittleEndian.PutUint32(b[8:], uint32(pc))
			binary.LittleEndian.PutUint32(b[12:], uint32(executed))
			h = fnv(h, b[:])
		}})
		var at [3]uint64
		var out *vm.Store
		for i := range at {
			out = vm.NewStore(4096, 0, true)
			at[i] = m.Place(&vm.Region{Bytes: 4096, Store: out})
		}
		l := m.Start(vm.Work{Kernel: mod.Kernel("k"), Grid: gpu.Dim3{X: 2}, Block: gpu.Dim3{X: 64},
			Args: new(gpu.Args).Uint64(at[0]).Uint64(at[1]).Uint64(at[2]).Uint64(0).Bytes(), Seq: 1})
		for range 1000 {
			if m.Run(1000) && !m.Running() {
				break
			}
		}
		done, fault := l.Done()
		require.True(t, done)
		require.Nil(t, fault)
		return fnv(h, out.Data)
	}
	for seed, want := range traces {
		require.Equal(t, want, run(seed), "seed %d", seed)
		require.Equal(t, want, run(seed), "seed %d, again", seed)
	}
}

var traces = map[uint64]uint64{1: 0x3f57a736a1073707, 2: 0x657b878c1c3695b7, 3: 0x1038023e178d8191}
