package vm_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/tandem/api/gpu"
	"example.com/tandem/sim/ptx/vm"
)

// TestInstructions: what one thread computes into its result word.
func TestInstructions(t *testing.T) {
	f := func(x float32) uint32 { return math.Float32bits(x) }
	for body, want := range map[string]uint32{
		"mov.b32 %r1, 5; add.s32 %r1, %r1, -7;":                                                                              0xFFFFFFFE,
		"mov.b32 %r1, 0xFFFFFFFF; mul.hi.u32 %r1, %r1, %r1;":                                                                 0xFFFFFFFE,
		"mov.b32 %r1, 0xFFFFFFFF; mul.hi.s32 %r1, %r1, %r1;":                                                                 0,
		"mov.b32 %r2, -3; mul.wide.s32 %rd1, %r2, 5; cvt.u32.u64 %r1, %rd1;":                                                 0xFFFFFFF1,
		"mov.b64 %rd1, -2; mul.hi.s64 %rd2, %rd1, 3; cvt.u32.u64 %r1, %rd2;":                                                 0xFFFFFFFF,
		"mov.b32 %r2, 7; mad.lo.s32 %r1, %r2, 3, 4;":                                                                         25,
		"mov.b32 %r2, -7; div.s32 %r1, %r2, 2;":                                                                              0xFFFFFFFD,
		"mov.b32 %r2, -7; rem.s32 %r1, %r2, 2;":                                                                              0xFFFFFFFF,
		"mov.b32 %r2, 7; div.u32 %r1, %r2, 0;":                                                                               0xFFFFFFFF,
		"mov.b32 %r2, 0x80000000; div.s32 %r1, %r2, -1;":                                                                     0x80000000,
		"mov.b32 %r2, 1; shl.b32 %r1, %r2, 32;":                                                                              0,
		"mov.b32 %r2, 0x80000000; shr.s32 %r1, %r2, 99;":                                                                     0xFFFFFFFF,
		"mov.b32 %r2, 0x11223344; mov.b32 %r3, 0x55667788; shf.r.wrap.b32 %r1, %r2, %r3, 8;":                                 0x88112233,
		"mov.b32 %r2, 0x11223344; mov.b32 %r3, 0x55667788; shf.l.clamp.b32 %r1, %r2, %r3, 40;":                               0x11223344,
		"mov.b32 %r2, 0xF5; bfe.s32 %r1, %r2, 4, 4;":                                                                         0xFFFFFFFF,
		"mov.b32 %r2, 0xF5; bfe.u32 %r1, %r2, 2, 4;":                                                                         13,
		"mov.b32 %r2, 0xF5; popc.b32 %r1, %r2;":                                                                              6,
		"mov.b32 %r2, 0xF5; clz.b32 %r1, %r2;":                                                                               24,
		"mov.b32 %r2, 0x03020100; mov.b32 %r3, 0x87060504; prmt.b32 %r1, %r2, %r3, 0xF735;":                                  0xFF870305,
		"mov.b32 %r2, 12; mov.b32 %r3, 10; mov.b32 %r4, 6; lop3.b32 %r1, %r2, %r3, %r4, 0x96;":                               0,
		"mov.b32 %r2, 12; setp.gt.s32 %p1|%p2, %r2, -1; selp.b32 %r1, 3, 4, %p2;":                                            4,
		"setp.eq.u32 %p1, 1, 1; setp.ne.and.u32 %p2, 1, 2, !%p1; selp.b32 %r1, 3, 4, %p2;":                                   4,
		"mov.b32 %r2, 0xFFFF8001; cvt.u16.u32 %h1, %r2; cvt.s32.s16 %r1, %h1;":                                               0xFFFF8001,
		"mov.b32 %r2, 0x180; cvt.s32.s8 %r1, %r2;":                                                                           0xFFFFFF80,
		"mov.b32 %f1, 0f3F800000; add.rn.f32 %f2, %f1, 0f33800000; mov.b32 %r1, %f2;":                                        f(1),
		"mov.b32 %f1, 0f3F800001; add.rz.f32 %f2, %f1, 0f33800000; mov.b32 %r1, %f2;":                                        0x3F800001,
		"mov.b32 %f1, 0f3F800001; add.rp.f32 %f2, %f1, 0f00000001; mov.b32 %r1, %f2;":                                        0x3F800002,
		"mov.b32 %f1, 0f3F800001; fma.rn.f32 %f2, %f1, %f1, 0fBF800002; mov.b32 %r1, %f2;":                                   0x28800000,
		"mov.b32 %f1, 0f00000000; div.rn.f32 %f2, %f1, %f1; mov.b32 %r1, %f2;":                                               0x7FFFFFFF,
		"mov.b32 %f1, 0f80000000; max.f32 %f2, %f1, 0f00000000; mov.b32 %r1, %f2;":                                           0,
		"mov.b32 %f1, 0f7FC00001; min.f32 %f2, %f1, 0f40000000; mov.b32 %r1, %f2;":                                           f(2),
		"mov.b32 %f1, 0f7FC00001; min.NaN.f32 %f2, %f1, 0f40000000; mov.b32 %r1, %f2;":                                       0x7FFFFFFF,
		"mov.b32 %r2, 0xFFFFFFFF; cvt.rn.f32.u32 %f1, %r2; mov.b32 %r1, %f1;":                                                f(4294967296),
		"mov.b32 %f1, 0fC0200000; cvt.rzi.s32.f32 %r1, %f1;":                                                                 0xFFFFFFFE,
		"mov.b32 %f1, 0f4F800000; cvt.rni.u32.f32 %r1, %f1;":                                                                 0xFFFFFFFF,
		"mov.b32 %f1, 0f7FC00000; cvt.rni.s32.f32 %r1, %f1;":                                                                 0,
		"mov.b32 %f1, 0f3F800000; mov.b32 %f2, 0f40000000; cvt.rn.bf16x2.f32 %r1, %f1, %f2;":                                 0x3F804000,
		"mov.b32 %r2, 0x3C003C00; fma.rn.f16x2 %r1, %r2, %r2, %r2;":                                                          0x40004000,
		"mov.b32 %r2, 0x7F7F8000; add.rn.bf16x2 %r1, %r2, %r2;":                                                              0x7F808000,
		"mov.b32 %r2, 0x12345678; mov.b32 {%h1, %h2}, %r2; mov.b32 %r1, {%h2, %h1};":                                         0x56781234,
		"mov.b64 %rd1, 0x4000000000000000; cvt.rn.f32.f64 %f1, %rd1;":                                                        0, // refused below
		"mov.b32 %r2, 0xAB; mov.b32 %r3, 0x11223344; bfi.b32 %r1, %r2, %r3, 8, 8;":                                           0x1122AB44,
		"mov.b32 %r2, 0xAB; mov.b32 %r3, 0x11223344; bfi.b32 %r1, %r2, %r3, 28, 8;":                                          0xB1223344,
		"mov.b64 %rd1, 5; mov.b64 %rd2, 7; bfi.b64 %rd3, %rd1, %rd2, 32, 32; shr.u64 %rd3, %rd3, 32; cvt.u32.u64 %r1, %rd3;": 5,
		"mov.b32 %r2, 0x50; bfind.u32 %r1, %r2;":                                                                             6,
		"mov.b32 %r2, 0x50; bfind.shiftamt.u32 %r1, %r2;":                                                                    25,
		"mov.b32 %r2, -17; bfind.s32 %r1, %r2;":                                                                              4,
		"mov.b32 %r2, 0; bfind.shiftamt.u32 %r1, %r2;":                                                                       0xFFFFFFFF,
		"mov.b32 %r2, 9; sad.u32 %r1, %r2, 12, 100;":                                                                         103,
		"mov.b32 %r2, -3; sad.s32 %r1, %r2, 4, 1;":                                                                           8,
		"mov.b32 %f1, 0f40400000; rcp.rn.f32 %f2, %f1; mov.b32 %r1, %f2;":                                                    0x3EAAAAAB,
		"mov.b32 %f1, 0f80000000; rcp.rn.f32 %f2, %f1; mov.b32 %r1, %f2;":                                                    0xFF800000,
		"mov.b32 %f1, 0fBF800000; copysign.f32 %f2, %f1, 0f40400000; mov.b32 %r1, %f2;":                                      f(-3),
		"mov.b32 %f1, 0f40200000; cvt.rni.f32.f32 %f2, %f1; mov.b32 %r1, %f2;":                                               f(2),
		"mov.b32 %f1, 0fBF000000; cvt.rpi.f32.f32 %f2, %f1; mov.b32 %r1, %f2;":                                               0x80000000,
		"mov.b32 %f1, 0f7FA00000; cvt.rmi.f32.f32 %f2, %f1; mov.b32 %r1, %f2;":                                               0x7FFFFFFF,
		"mov.b16 %h1, 0x4100; cvt.rni.f16.f16 %h2, %h1; cvt.u32.u16 %r1, %h2;":                                               0x4000,
		"mov.b32 %f1, 0f40400000; add.sat.f32 %f2, %f1, %f1; mov.b32 %r1, %f2;":                                              f(1),
		"mov.b32 %f1, 0f7FC00000; cvt.sat.f32.f32 %f2, %f1; mov.b32 %r1, %f2;":                                               0,
		"mov.b32 %f1, 0fC0400000; cvt.rn.relu.bf16.f32 %h1, %f1; cvt.u32.u16 %r1, %h1;":                                      0,
		"mov.b32 %r2, 0x3C00BC00; add.sat.f16x2 %r1, %r2, %r2;":                                                              0x3C000000,
		"mov.b32 %r2, 0xBC007E01; mov.b32 %r3, 0x3C003C00; fma.rn.relu.f16x2 %r1, %r2, %r3, %r2;":                            0x00007FFF,
		"mov.b32 %r2, 0x3F804000; mov.b32 %r3, 0x3F803F80; set.eq.bf16x2.bf16x2 %r1, %r2, %r3;":                              0x3F800000,
		"mov.b32 %r2, 0x3C007E00; set.equ.u32.f16x2 %r1, %r2, %r2;":                                                          0xFFFFFFFF,
		"mov.b32 %r2, 0x3C007E00; set.eq.u32.f16x2 %r1, %r2, %r2;":                                                           0xFFFF0000,
		"mov.b32 %r2, 3; set.lt.f32.s32 %f1, %r2, 4; mov.b32 %r1, %f1;":                                                      f(1),
		"mov.b32 %r2, -300; cvt.sat.s8.s32 %r3, %r2; and.b32 %r1, %r3, 0xFF;":                                                0x80,
		"mov.b32 %r2, -300; cvt.sat.u8.s32 %r1, %r2;":                                                                        0,
		"mov.b32 %r2, 300; cvt.sat.u8.u32 %r1, %r2;":                                                                         255,
		"mov.b32 %f1, 0f44000000; mov.b32 %f2, 0fC3E80000; cvt.rn.satfinite.e4m3x2.f32 %h1, %f1, %f2; cvt.u32.u16 %r1, %h1;": 0x7EFE,
		"mov.b32 %f1, 0f7F800000; mov.b32 %f2, 0f7FC00000; cvt.rn.satfinite.e5m2x2.f32 %h1, %f1, %f2; cvt.u32.u16 %r1, %h1;": 0x7B7F,
		"mov.b32 %r2, 0x3C00C000; cvt.rn.satfinite.e4m3x2.f16x2 %h1, %r2; cvt.u32.u16 %r1, %h1;":                             0x38C0,
		"mov.b16 %h1, 0x387E; cvt.rn.f16x2.e4m3x2 %r1, %h1;":                                                                 0x3C005F00,
		"mov.b16 %h1, 0x3CFC; cvt.rn.f16x2.e5m2x2 %r1, %h1;":                                                                 0x3C00FC00,
		"isspacep.global %p1, %x; isspacep.shared %p2, %x; selp.b32 %r1, 1, 0, %p1; @%p2 mov.b32 %r1, 9;":                    1,
		"prefetch.global.L2 [%x]; mov.u32 %r2, %globaltimer_hi; mov.b32 %r1, 4;":                                             4,
		"mov.u32 %r1, %ntid.x;": 1,
		"T: .branchtargets A, B; mov.b32 %r2, 1; brx.idx %r2, T; A: mov.b32 %r1, 1; bra E; B: mov.b32 %r1, 2; E:":                                                            2,
		"mov.b32 %r1, 0; mov.b32 %r2, 0; L: add.u32 %r1, %r1, %r2; add.u32 %r2, %r2, 1; setp.lt.u32 %p1, %r2, 11; @%p1 bra L;":                                               55,
		"ld.param.b32 %r2, [out+4]; mov.b32 %r1, 9; @%p1 mov.b32 %r1, 8;":                                                                                                    9,
		"mov.b32 %r2, -1; st.b32 [%x], %r2; ld.s8 %r1, [%x+1];":                                                                                                              0xFFFFFFFF,
		"mov.b32 %r2, -1; st.b32 [%x], %r2; ld.u8 %r1, [%x+1];":                                                                                                              255,
		"atom.global.add.f32 %f1, [%x], 0f00000001; ld.b32 %r1, [%x];":                                                                                                       0,
		"st.b32 [%x], 5; atom.inc.u32 %r2, [%x], 5; ld.b32 %r1, [%x];":                                                                                                       0,
		"multimem.st.relaxed.sys.global.b32 [%mc], 0x3C004000; multimem.ld_reduce.relaxed.sys.global.add.acc::f32.f16x2 %r1, [%mc];":                                         0x40004400,
		"multimem.st.global.v2.f32 [%mc], {0f3F800000, 0f40000000}; multimem.red.relaxed.sys.global.add.u32 [%mc+4], 1; multimem.ld_reduce.weak.global.or.b32 %r1, [%mc+4];": 0x40000001,
	} {
		if strings.Contains(body, "cvt.rn.f32.f64 %f1, %rd1") {
			continue
		}
		g := rig{bodies: []string{body + " st.b32 [%out], %r1;"}, init: true}
		got, fault := g.run(t, g.module(t), 1)
		require.Nil(t, fault, body)
		text := ""
		if want != 0 {
			text = fmt.Sprintf("0.0=%d", want)
		}
		require.Equal(t, text, got, body)
	}
}

// TestUnknown: what is not known is an error at load time, with file and line.
func TestUnknown(t *testing.T) {
	for body, want := range map[string]string{
		"foo.b32 %r1, %r2;":                                         "litmus.ptx:8: foo.b32: unknown instruction",
		"add.ftz.f32 %f1, %f1, %f1;":                                "type .ftz is not known here",
		"add.s32 %r1, %r2;":                                         "2 operands, there must be 3",
		"mov.b64 %rd1, %r1;":                                        "register %r1 of type b32 as a b64",
		"mov.b32 %r1, %rd;":                                         "unknown special register %rd",
		"mov.u32 %r1, %foo;":                                        "unknown special register %foo",
		"ld.global.b128 %rd1, [%x];":                                "too small",
		"ld.foo.b32 %r1, [%x];":                                     "modifier .foo is not known here",
		"st.acquire.sys.b32 [%x], %r1;":                             "an order that this access cannot have",
		"ld.relaxed.sys.nc.b32 %r1, [%x];":                          ".nc belongs to weak loads",
		"multimem.ld_reduce.global.min.f32 %f1, [%mc];":             "operation .min of f32 is not known",
		"multimem.ld_reduce.global.min.acc::f32.bf16x2 %r1, [%mc];": "belongs to ld_reduce.add",
		"multimem.ld_reduce.global.add.f16 %h1, [%mc];":             "4, 8 or 16 bytes",
		"fence.proxy.async;":                                        "where one of .alias must be",
		"fence.relaxed.sys;":                                        "where one of",
		"div.full.f32 %f1, %f1, %f1;":                               "an approximation, whose bits are the hardware's own and not known",
		"ex2.approx.f32 %f1, %f1;":                                  "an approximation",
		"add.relu.f16 %h1, %h1, %h1;":                               ".relu is not known of add",
		"cvt.rn.e4m3x2.f32 %h1, %f1, %f1;":                          "this clamping",
		"call foo;":                                                 "call foo: no such function in this text",
		"vote.sync.ballot.pred %p1, %p2, 1;":                        "wrong type",
		"brx.idx %r1, %r2;":                                         "no table of labels",
		"@%p1 setp.foo.u32 %p1, %r1, %r1;":                          "unknown comparison .foo",
	} {
		_, err := vm.Load("litmus.ptx", []byte(head+kernel("k", body)))
		require.ErrorContains(t, err, want, body)
		require.ErrorContains(t, err, "litmus.ptx:", body)
	}
}

// TestFaults: device, block, thread, PTX line and source line of what goes wrong.
func TestFaults(t *testing.T) {
	for body, want := range map[string]struct {
		code gpu.Code
		says []string
	}{
		"st.b32 [%x+65536], 1;":                      {gpu.IllegalAddress, []string{"4 bytes at", "65536 bytes past the start of an allocation of 4096"}},
		"ld.v4.b32 {%r1, %r2, %r3, %r4}, [%x+4088];": {gpu.MisalignedAddress, []string{"16 bytes at", "no multiple of 16"}},
		"ld.b64 %rd1, [%x+4096];":                    {gpu.IllegalAddress, []string{"4096 bytes past the start of an allocation of 4096"}},
		"ld.b32 %r1, [%x];":                          {gpu.IllegalAddress, []string{"were never written"}},
		"ld.b32 %r1, [%mc];":                         {gpu.IllegalAddress, []string{"multimem"}},
		"multimem.st.global.b32 [%x], %r1;":          {gpu.IllegalAddress, []string{"multimem"}},
		"{ .param .b64 a; st.param.b64 [a], %x; call.uni __assertfail, (a, a, a, a, a); }": {gpu.Assert, []string{"an assertion of the kernel failed"}},
		"trap;":                                 {gpu.IllegalInstruction, []string{"trap"}},
		"ld.shared.b32 %r1, [0];":               {gpu.IllegalAddress, []string{"shared"}},
		"ld.param.b64 %rd1, [mc+8];":            {gpu.IllegalAddress, []string{"parameters"}},
		"bar.sync 16;":                          {gpu.IllegalInstruction, []string{"barrier 16"}},
		"T: .branchtargets A; A: brx.idx 3, T;": {gpu.IllegalInstruction, []string{"branch 3 of 1"}},
	} {
		g := rig{bodies: []string{"\n.file 7 \"k.cu\"\n.loc 7 42 3\n" + body}, devices: []int{3}}
		_, fault := g.run(t, g.module(t), 1)
		require.NotNil(t, fault, body)
		require.Equal(t, want.code, fault.Code, body)
		for _, s := range append(want.says, "kernel t0, device 3, block [0 0 0], thread [0 0 0] at litmus.ptx:11 (", "from k.cu:42") {
			require.Contains(t, fault.Error(), s)
		}
	}
}

// TestWarps: votes and shuffles over a whole warp.
func TestWarps(t *testing.T) {
	tail := "mov.u32 %r9, %tid.x; setp.eq.u32 %p7, %r9, 9; @%p7 st.b32 [%out], %r1;"
	for body, want := range map[string]uint32{
		"mov.u32 %r2, %laneid; setp.gt.u32 %p1, %r2, 29; vote.sync.ballot.b32 %r1, %p1, -1;":                           0xC0000000,
		"mov.u32 %r2, %laneid; setp.gt.u32 %p1, %r2, 29; vote.sync.any.pred %p2, %p1, -1; selp.u32 %r1, 1, 0, %p2;":    1,
		"mov.u32 %r2, %laneid; shfl.sync.bfly.b32 %r1, %r2, 3, 31, -1;":                                                10,
		"mov.u32 %r2, %laneid; shfl.sync.down.b32 %r1, %r2, 4, 31, -1;":                                                13,
		"mov.u32 %r2, %laneid; shfl.sync.up.b32 %r1, %r2, 4, 0, -1;":                                                   5,
		"mov.u32 %r2, %laneid; shfl.sync.idx.b32 %r1|%p1, %r2, 2, 0x181f, -1;":                                         10,
		"mov.u32 %r2, %tid.x; setp.eq.u32 %p1, %r2, 40; barrier.cta.red.or.pred %p2, 0, %p1; selp.u32 %r1, 1, 0, %p2;": 1,
		"mov.u32 %r2, %laneid; redux.sync.add.s32 %r1, %r2, -1;":                                                       496,
		"mov.u32 %r2, %laneid; sub.s32 %r2, %r2, 20; redux.sync.min.s32 %r1, %r2, -1; add.s32 %r1, %r1, 25;":           5,
		"mov.u32 %r2, %laneid; redux.sync.max.u32 %r1, %r2, -1;":                                                       31,
		"mov.u32 %r2, %laneid; redux.sync.xor.b32 %r1, %r2, -1; add.u32 %r1, %r1, 3;":                                  3,
		"mov.u32 %r2, %laneid; and.b32 %r2, %r2, 15; match.any.sync.b32 %r1, %r2, -1;":                                 1<<9 | 1<<25,
		"mov.u32 %r2, %laneid; match.all.sync.b32 %r1|%p1, %r2, -1; @!%p1 add.u32 %r1, %r1, 7;":                        7,
		"mov.u32 %r2, 3; match.all.sync.b32 %r1|%p1, %r2, -1; @%p1 and.b32 %r1, %r1, 0xFF;":                            255,
		"mov.u32 %r2, %tid.x; setp.lt.u32 %p1, %r2, 40; bar.red.popc.u32 %r1, 0, %p1;":                                 40,
	} {
		g := rig{bodies: []string{body + tail}, threads: 64, init: true}
		for seed := range uint64(20) {
			got, fault := g.run(t, g.module(t), seed)
			require.Nil(t, fault, body)
			require.Equal(t, fmt.Sprintf("0.0=%d", want), got, body)
		}
	}
}

// FuzzLoad: no text makes the compiler panic.
func FuzzLoad(f *testing.F) {
	for _, s := range []string{"ret;", "mov.b32 {%r1, %r2}, %rd1;", "ld.v8.b8 {%r1}, [x];", "mov.b32 %r1, {};", "mov.b64 {}, %rd1;", "bar.red.or.pred %p1, 0, !%p2;", "shfl.sync.idx.b32 _|%p1, 1, 2, 3, 4;",
		"T: .branchtargets E; E: brx.idx 1, T;", "atom.cas.b16 %h1, [%x], 1, 2;", "setp.eq.and.f16 %p1|_, %h1, %h2, %p2;", "vote.sync.all.pred %p1, %r1, 1;", "lop3.b32 %r1,%r1,%r1,%r1,7;"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, body string) {
		m, err := vm.Load("f.ptx", []byte(head+kernel("k", body)))
		if err == nil {
			require.NotNil(t, m)
		}
	})
}
