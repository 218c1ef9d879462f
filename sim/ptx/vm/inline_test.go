package vm_test

import (
	"encoding/binary"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/tandem/api/gpu"
	"example.com/tandem/sim/ptx/vm"
)

// functions are as clang writes them.
const functions = `.func (.param .b32 ret) double(.param .b32 a) { .reg .b32 %r<3>; .reg .pred %p;
	ld.param.b32 %r1, [a]; setp.eq.u32 %p, %r1, 0; @%p bra Z; add.s32 %r2, %r1, %r1; st.param.b32 [ret], %r2; ret;
Z:	st.param.b32 [ret], 77; ret; }
.func (.param .b32 ret) twice(.param .b32 a) { .reg .b32 %r<5>; ld.param.b32 %r1, [a];
	{ .param .b32 p0; .param .b32 r0; st.param.b32 [p0], %r1; call.uni (r0), double, (p0); ld.param.b32 %r2, [r0]; }
	{ .param .b32 p0; .param .b32 r0; st.param.b32 [p0], %r2; call.uni (r0), double, (p0); ld.param.b32 %r3, [r0]; }
	st.param.b32 [ret], %r3; ret; }
.func loop() { call loop; ret; }
`

const calling = `{ .param .b32 p0; .param .b32 r0; st.param.b32 [p0], %r1; call.uni (r0), twice, (p0); ld.param.b32 %r2, [r0]; }`

func TestCalls(t *testing.T) {
	for value, want := range map[string]string{"3": "0.0=12", "0": "0.0=154"} {
		m, err := vm.Load("calls.ptx", []byte(head+functions+kernel("t0", "mov.b32 %r1, "+value+";"+calling+"st.b32 [%out], %r2;")))
		require.NoError(t, err)
		got, fault := rig{bodies: []string{""}, init: true}.run(t, m, 1)
		require.Nil(t, fault)
		require.Equal(t, want, got)
	}
	for body, want := range map[string]string{
		"call.uni loop;":                            "recursion",
		"call.uni missing;":                         "calls.ptx:16: call.uni missing: no such function in this text",
		"{ .param .b64 p0; call.uni twice, (p0); }": "0 arguments or results, the function has 1",
		"{ .param .b16 p0; .param .b32 r0; call.uni (r0), twice, (p0); }":     "no parameter of 4 bytes",
		"{ .param .b32 p0; .param .b32 r0; call.uni (r0), twice, (p0), fp; }": "indirect calls are not known",
	} {
		_, err := vm.Load("calls.ptx", []byte(head+functions+kernel("t0", body)))
		require.ErrorContains(t, err, want)
	}
}

// TestCompiledCalls runs what clang makes of device functions that it was told
// not to put in line (testdata/calls.cu, -O2).
func TestCompiledCalls(t *testing.T) {
	text, err := os.ReadFile("testdata/calls.ptx")
	require.NoError(t, err)
	mod, err := vm.Load("calls.ptx", text)
	require.NoError(t, err)
	m := vm.New(vm.Options{})
	in, out := vm.NewStore(400, 0, true), vm.NewStore(4, 0, false)
	mix := func(a, b uint32) uint32 { return a*31 + (b ^ a>>3) }
	const n = 99
	want := uint32(0)
	for i := range n {
		v := uint32(i*i + 7)
		binary.LittleEndian.PutUint32(in.Data[4*i:], v)
		want = mix(want, v)
	}
	want += mix(n, 1)
	args := new(gpu.Args).Uint64(m.Place(&vm.Region{Bytes: 400, Store: in})).Uint64(m.Place(&vm.Region{Bytes: 4, Store: out})).Int32(n)
	l := m.Start(vm.Work{Kernel: mod.Kernel("k"), Args: args.Bytes(), Seq: 1})
	m.Run(1 << 20)
	done, fault := l.Done()
	require.Nil(t, fault)
	require.True(t, done)
	require.Equal(t, want, binary.LittleEndian.Uint32(out.Data))
}
