package asm_test

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/tandem/sim/ptx/asm"
)

const head = ".version 8.4\n.target sm_90\n.address_size 64\n"

func entry(body string) string {
	return head + ".visible .entry k(.param .u64 x, .param .align 8 .b8 s[24])\n.maxntid 64,2\n{\n" + body + "\n}\n"
}

func TestParse(t *testing.T) {
	m, err := asm.Parse("k.ptx", []byte(entry(`.reg .b32 %r<9>; .reg .pred %p<2>, q;
	.file 1 "k.cu"
	.loc 1 7 3
	{ .reg .b32 %r1; mov.b32 %r1, 0f3F800000; }
	.loc 1 9 3, function_name $L__info_string0, inlined_at 1 9 3
L:	@!%p1 ld.relaxed.sys.global.v2.b32 {%r1, _}, [x+8];
	setp.eq.s32 %p0|q, %r1, -5;
	multimem.ld_reduce.relaxed.sys.global.add.acc::f32.v2.f16x2 {%r1, %r2}, [%r3+-16];
	@q bra L;
	.loc 1 12 3, function_name $L__info_string0+16, inlined_at 1 9 3
	mov.u32 %r8, %tid.x; ret;`)))
	require.NoError(t, err)
	f := m.Func("k")
	require.Equal(t, 128, f.MaxThreads)
	require.Equal(t, 24, f.Params[1].Bytes())
	b := f.Body
	require.NotEqual(t, b[0].Args[0].Reg, b[1].Args[0].List[0].Reg, "two scopes, two registers")
	require.Equal(t, uint64(0x3F800000), b[0].Args[1].Bits)
	require.True(t, b[1].Not)
	require.Equal(t, "k.cu:7", m.Source(b[0].Place))
	require.Equal(t, "k.cu:9", m.Source(b[1].Place))
	require.Equal(t, asm.Sink, b[1].Args[0].List[1].Kind)
	require.Equal(t, int64(8), b[1].Args[1].Off)
	require.Equal(t, asm.Pair, b[2].Args[0].Kind)
	require.Equal(t, -5, int(int64(b[2].Args[2].Bits)))
	require.Equal(t, []string{"ld_reduce", "relaxed", "sys", "global", "add", "acc::f32", "v2", "f16x2"}, b[3].Mods)
	require.Equal(t, int64(-16), b[3].Args[1].Off)
	require.Equal(t, 1, b[4].Args[0].Target)
	require.Equal(t, "%tid.x", b[5].Args[1].Name)
}

// TestErrors: what cannot be read is said with its line.
func TestErrors(t *testing.T) {
	for text, want := range map[string]string{
		"":                                 "k.ptx:1: no .version",
		head + "x":                         `k.ptx:4: "x" outside a function`,
		head + ".bogus 1;":                 "unknown directive .bogus",
		entry("mov.b32 %r1, 1;"):           "",
		entry("bra L;"):                    "k.ptx:7: no label L in k",
		entry("@%p1 ret;"):                 `"%p1" is no predicate`,
		entry(".reg .b32 a; .reg .b32 a;"): "declared twice",
		entry("L: L: ret;"):                "label L is there twice",
		entry("mov.b32 a b;"):              `k.ptx:7: "b" after an operand of mov.b32`,
		entry(".loc 1 2 3, foo 7"):         "unknown word foo of .loc",
		entry("{"):                         "has no end",
		entry("st.b32 [1;"):                `";" where "]" must be`,
		entry("/* no end"):                 "a comment without an end",
		entry(".pragma \"x"):               "a string without an end",
		entry(strings.Repeat("{", 99)):     "nested more than 64 deep",
	} {
		_, err := asm.Parse("k.ptx", []byte(text))
		if want == "" {
			require.NoError(t, err, text)
			continue
		}
		var bad *asm.Error
		require.True(t, errors.As(err, &bad), "%q: %v", text, err)
		require.ErrorContains(t, err, want)
	}
}

// TestSuiteKernels reads the kernels that drivers are tested with.
func TestSuiteKernels(t *testing.T) {
	text, err := os.ReadFile("../../../api/gpu/gputest/kernels.ptx")
	require.NoError(t, err)
	m, err := asm.Parse("kernels.ptx", text)
	require.NoError(t, err)
	require.Len(t, m.Funcs, 8)
	require.Equal(t, []byte{42, 0, 0, 0, 0, 0, 0, 0}, m.Vars[0].Init)
	require.True(t, m.Vars[1].Extern)
}

// FuzzParse: no text makes the reader panic.
func FuzzParse(f *testing.F) {
	for _, s := range []string{head, entry("ret;"), entry(".reg .b32 %r<3>; mov.b32 %r1, {%r2, !%r1};"), entry("T: .branchtargets L;\nL: brx.idx a, T;"),
		head + ".global .b8 x[4] = {1, 2};", entry("call (a), f, (b);"), head + ".func (.param .b32 r) f(.param .b32 a) { ret; }", entry("a|b|c; !!x; {{{; [[["), "/*", "\"", ".."} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		m, err := asm.Parse("f.ptx", []byte(text))
		if err != nil {
			var bad *asm.Error
			require.ErrorAs(t, err, &bad)
			return
		}
		require.NotEmpty(t, m.Version)
	})
}
