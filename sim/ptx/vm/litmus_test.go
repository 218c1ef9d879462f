package vm_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/tandem/sim/ptx/vm"
)

const (
	spin    = "L: %s %%r1, [%%y]; setp.eq.u32 %%p1, %%r1, 0; @%%p1 bra L;\n"
	await   = "L: ld.acquire.sys.b32 %r1, [%y]; setp.eq.u32 %p1, %r1, 0; @%p1 bra L;\n"
	relaxed = "L: ld.relaxed.sys.b32 %r1, [%y]; setp.eq.u32 %p1, %r1, 0; @%p1 bra L;\n"
)

// TestLitmus: what the PTX memory model, and NVIDIA's mixed-proxy model, allow
// and forbid. Results are block.word=value, zeros left out.
func TestLitmus(t *testing.T) {
	both := []int{0, 1}
	st := func(where string, v string) string { return "st.relaxed.sys.b32 [" + where + "], " + v + ";\n" }
	ld := func(r, where string) string { return "ld.relaxed.sys.b32 %" + r + ", [" + where + "];\n" }
	out := func(regs ...string) (s string) {
		for i, r := range regs {
			s += "st.b32 [%out+" + string('0'+rune(4*i%10)) + "], %" + r + ";\n"
			if 4*i > 9 {
				panic("two results at most")
			}
		}
		return s
	}
	for _, c := range []struct {
		name    string
		bodies  []string
		devices []int
		want    []string // all outcomes
		has     []string // some of the outcomes
		never   []string
	}{
		{name: "message passing, release and acquire",
			bodies:  []string{"st.b32 [%x], 1; st.release.sys.b32 [%y], 1;", await + "ld.b32 %r2, [%x];\n" + out("r2")},
			devices: both, want: []string{"1.0=1"}},
		{name: "message passing, fences",
			bodies:  []string{"st.b32 [%x], 1; fence.acq_rel.sys;" + st("%y", "1"), relaxed + "fence.acq_rel.sys; ld.b32 %r2, [%x];\n" + out("r2")},
			devices: both, want: []string{"1.0=1"}},
		{name: "message passing without the writer's fence",
			bodies:  []string{"st.b32 [%x], 1;" + st("%y", "1"), relaxed + "fence.acq_rel.sys; ld.b32 %r2, [%x];\n" + out("r2")},
			devices: both, has: []string{"race"}},
		{name: "message passing without the reader's fence",
			bodies:  []string{"st.b32 [%x], 1; fence.acq_rel.sys;" + st("%y", "1"), relaxed + "ld.b32 %r2, [%x];\n" + out("r2")},
			devices: both, has: []string{"race"}},
		{name: "message passing, strong data, no fence: stale data",
			bodies:  []string{st("%x", "1") + st("%y", "1"), relaxed + ld("r2", "%x") + out("r2")},
			devices: both, want: []string{"", "1.0=1"}},
		{name: "message passing, the scope of the release too small",
			bodies:  []string{"st.b32 [%x], 1; fence.acq_rel.gpu;" + st("%y", "1"), await + "ld.b32 %r2, [%x];\n" + out("r2")},
			devices: both, has: []string{"race"}},
		{name: "message passing, gpu scope on one GPU",
			bodies: []string{"st.b32 [%x], 1; st.release.gpu.b32 [%y], 1;", "L: ld.acquire.gpu.b32 %r1, [%y]; setp.eq.u32 %p1, %r1, 0; @%p1 bra L; ld.b32 %r2, [%x];\n" + out("r2")},
			want:   []string{"1.0=1"}},
		{name: "message passing, gpu scope on two GPUs",
			bodies:  []string{"st.b32 [%x], 1; st.release.gpu.b32 [%y], 1;", "L: ld.acquire.gpu.b32 %r1, [%y]; setp.eq.u32 %p1, %r1, 0; @%p1 bra L; ld.b32 %r2, [%x];\n" + out("r2")},
			devices: both, has: []string{"race"}},
		{name: "message passing, block scope between blocks",
			bodies: []string{st("%x", "1") + "st.release.cta.b32 [%y], 1;", "ld.acquire.cta.b32 %r1, [%y];" + out("r1")},
			has:    []string{"race"}},
		{name: "store buffering",
			bodies:  []string{st("%x", "1") + ld("r1", "%y") + out("r1"), st("%y", "1") + ld("r1", "%x") + out("r1")},
			devices: both, want: []string{"", "0.0=1", "0.0=1 1.0=1", "1.0=1"}},
		{name: "store buffering, fence.acq_rel",
			bodies:  []string{st("%x", "1") + "fence.acq_rel.sys;" + ld("r1", "%y") + out("r1"), st("%y", "1") + "fence.acq_rel.sys;" + ld("r1", "%x") + out("r1")},
			devices: both, has: []string{""}},
		{name: "store buffering, fence.sc",
			bodies:  []string{st("%x", "1") + "fence.sc.sys;" + ld("r1", "%y") + out("r1"), st("%y", "1") + "fence.sc.sys;" + ld("r1", "%x") + out("r1")},
			devices: both, want: []string{"0.0=1", "0.0=1 1.0=1", "1.0=1"}},
		{name: "store buffering, fence.sc of too small a scope",
			bodies:  []string{st("%x", "1") + "fence.sc.gpu;" + ld("r1", "%y") + out("r1"), st("%y", "1") + "fence.sc.gpu;" + ld("r1", "%x") + out("r1")},
			devices: both, has: []string{""}},
		{name: "IRIW, relaxed",
			bodies: []string{st("%x", "1"), st("%y", "1"), ld("r1", "%x") + ld("r2", "%y") + out("r1", "r2"), ld("r1", "%y") + ld("r2", "%x") + out("r1", "r2")},
			has:    []string{"2.0=1 3.0=1"}},
		{name: "IRIW, acquire",
			bodies: []string{st("%x", "1"), st("%y", "1"), "ld.acquire.sys.b32 %r1, [%x];" + ld("r2", "%y") + out("r1", "r2"), "ld.acquire.sys.b32 %r1, [%y];" + ld("r2", "%x") + out("r1", "r2")},
			has:    []string{"2.0=1 3.0=1"}},
		{name: "WRC",
			bodies: []string{st("%x", "1"), "A: ld.relaxed.sys.b32 %r1, [%x]; setp.eq.u32 %p1, %r1, 0; @%p1 bra A; fence.acq_rel.sys;" + st("%y", "1"), await + ld("r2", "%x") + out("r2")},
			want:   []string{"2.0=1"}},
		{name: "WRC, weak data",
			bodies: []string{"st.b32 [%x], 1; st.release.sys.b32 [%x+8], 1;", "A: ld.acquire.sys.b32 %r1, [%x+8]; setp.eq.u32 %p1, %r1, 0; @%p1 bra A; st.release.sys.b32 [%y], 1;", await + "ld.b32 %r2, [%x];" + out("r2")},
			want:   []string{"2.0=1"}},
		{name: "coherence of reads",
			bodies: []string{st("%x", "1") + st("%x", "2"), ld("r1", "%x") + ld("r2", "%x") + out("r1", "r2")},
			has:    []string{"", "1.1=1", "1.0=1 1.1=2", "1.0=2 1.1=2"}, never: []string{"1.0=2 1.1=1", "1.0=1", "1.0=2"}},
		{name: "coherence with one's own write",
			bodies: []string{st("%x", "1"), st("%x", "2") + ld("r1", "%x") + out("r1")},
			want:   []string{"1.0=1", "1.0=2"}},
		{name: "a release sequence goes on through atomics",
			bodies: []string{"st.b32 [%x], 1; st.release.sys.b32 [%y], 1;", "A: atom.relaxed.sys.cas.b32 %r1, [%y], 1, 2; setp.eq.u32 %p1, %r1, 0; @%p1 bra A;", "L: ld.acquire.sys.b32 %r1, [%y]; setp.ne.u32 %p1, %r1, 2; @%p1 bra L; ld.b32 %r2, [%x];" + out("r2")},
			want:   []string{"2.0=1"}},
		{name: "atomics lose nothing",
			bodies: []string{"atom.add.relaxed.sys.u32 %r1, [%x], 1; red.add.relaxed.sys.u32 [%x], 1;", "red.relaxed.sys.add.u32 [%x], 1; atom.acq_rel.sys.add.u32 %r1, [%y], 0; fence.sc.sys; atom.add.u32 %r2, [%x], 0;" + out("r2")},
			want:   []string{"1.0=1", "1.0=2", "1.0=3"}},
		{name: "weak and strong",
			bodies: []string{"st.b32 [%x], 1;", ld("r1", "%x") + out("r1")}, has: []string{"race"}},
		{name: "a line as v2.b64 on both sides",
			bodies:  []string{"mov.b64 %rd1, 0x100000001; st.relaxed.sys.global.v2.b64 [%x], {%rd1, %rd1};", "ld.relaxed.sys.global.v2.b64 {%rd1, %rd2}, [%x]; mov.b64 {%r1, %r2}, %rd1; sub.u32 %r1, %r1, %r2;" + out("r1")},
			devices: both, want: []string{""}},
		{name: "a line as v4.b32: half of it may be older",
			bodies:  []string{"st.relaxed.sys.global.v4.b32 [%x], {1, 1, 1, 1};", "ld.relaxed.sys.global.v4.b32 {%r1, %r2, %r3, %r4}, [%x];" + out("r1", "r2")},
			devices: both, want: []string{"", "1.0=1", "1.0=1 1.1=1", "1.1=1"}},
		{name: "a line as v4.b32 against v2.b64",
			bodies:  []string{"st.relaxed.sys.global.v4.b32 [%x], {1, 1, 1, 1};", "ld.relaxed.sys.global.v2.b64 {%rd1, %rd2}, [%x];"},
			devices: both, has: []string{"race"}},
		{name: ".nc after acquire",
			bodies:  []string{"st.b32 [%x], 1; st.release.sys.b32 [%y], 1;", await + "ld.global.nc.b32 %r2, [%x];\n" + out("r2")},
			devices: both, want: []string{"race"}},
		{name: "alias proxies, without fences",
			bodies:  []string{"st.b32 [%x], 1; st.release.sys.b32 [%y], 1;", await + "multimem.ld_reduce.relaxed.sys.global.max.u32 %r2, [%mc];\n" + out("r2")},
			devices: both, want: []string{"race"}},
		{name: "alias proxies, fence.proxy.alias",
			bodies:  []string{"st.b32 [%x], 1; fence.proxy.alias; st.release.sys.b32 [%y], 1;", await + "fence.proxy.alias; multimem.ld_reduce.relaxed.sys.global.max.u32 %r2, [%mc];\n" + out("r2")},
			devices: both, want: []string{"1.0=1"}},
		{name: "alias proxies, only the writer's fence",
			bodies:  []string{"st.b32 [%x], 1; fence.proxy.alias; st.release.sys.b32 [%y], 1;", await + "multimem.ld_reduce.relaxed.sys.global.max.u32 %r2, [%mc];\n" + out("r2")},
			devices: both, want: []string{"race"}},
		{name: "alias proxies, only the reader's fence",
			bodies:  []string{"st.b32 [%x], 1; st.release.sys.b32 [%y], 1;", await + "fence.proxy.alias; multimem.ld_reduce.relaxed.sys.global.max.u32 %r2, [%mc];\n" + out("r2")},
			devices: both, want: []string{"race"}},
		{name: "alias proxies, the writer's fence too early",
			bodies:  []string{"fence.proxy.alias; st.b32 [%x], 1; st.release.sys.b32 [%y], 1;", await + "fence.proxy.alias; multimem.ld_reduce.relaxed.sys.global.max.u32 %r2, [%mc];\n" + out("r2")},
			devices: both, want: []string{"race"}},
		{name: "alias proxies in one thread",
			bodies: []string{"multimem.st.relaxed.sys.global.b32 [%mc], 3; ld.b32 %r1, [%x];" + out("r1")}, want: []string{"race"}},
		{name: "alias proxies in one thread, fenced",
			bodies: []string{"multimem.st.relaxed.sys.global.b32 [%mc], 3; fence.proxy.alias; ld.b32 %r1, [%x];" + out("r1")}, want: []string{"0.0=3"}},
		{name: "neighbouring bytes are no race",
			bodies: []string{"st.b8 [%x], 1;", "st.b8 [%x+1], 1;", "st.b16 [%x+2], %h0;"}, want: []string{""}},
		{name: "overlapping bytes are",
			bodies: []string{"st.b8 [%x+3], 1;", "st.b32 [%x], 1;"}, want: []string{"race"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := rig{bodies: c.bodies, devices: c.devices, init: true, stale: 96}.outcomes(t)
			if c.want != nil {
				require.Equal(t, c.want, got)
			}
			require.Subset(t, got, c.has)
			for _, n := range c.never {
				require.NotContains(t, got, n)
			}
		})
	}
}

// TestBarrier: a barrier orders the block, and nothing else.
func TestBarrier(t *testing.T) {
	body := `mov.u32 %r1, %tid.x; setp.eq.u32 %p1, %r1, 5; @%p1 st.b32 [%x], 7;
	bar.sync 0;
	setp.eq.u32 %p2, %r1, 60; @!%p2 bra E; ld.b32 %r2, [%x]; st.b32 [%out], %r2;
E:`
	require.Equal(t, []string{"0.0=7"}, rig{bodies: []string{body}, threads: 64, init: true}.outcomes(t))
	require.Contains(t, rig{bodies: []string{strings.ReplaceAll(body, "bar.sync 0;", "")}, threads: 64, init: true}.outcomes(t), "race")
	// A barrier of the first warps only.
	part := strings.ReplaceAll(body, "bar.sync 0;", "setp.ge.u32 %p3, %r1, 32; @%p3 bra S; bar.sync 1, 32;\nS:")
	require.Contains(t, rig{bodies: []string{part}, threads: 64, init: true}.outcomes(t), "race")
	counted := strings.ReplaceAll(body, "bar.sync 0;", "bar.sync 1, 64;")
	require.Equal(t, []string{"0.0=7"}, rig{bodies: []string{counted}, threads: 64, init: true}.outcomes(t))
}

// TestRacesThatAreNoFaults: a race is told of, and described, and the kernel
// goes on where that is asked for.
func TestRacesThatAreNoFaults(t *testing.T) {
	g := rig{bodies: []string{"st.b32 [%x], 1;", "st.b32 [%x], 1; st.b32 [%out], 1;"}, init: true}
	mod := g.module(t)
	races := 0
	g.race = func(describe func() *vm.Fault) bool {
		races++
		require.Contains(t, describe().Error(), "race: weak store of 4 bytes")
		return false
	}
	got, fault := g.run(t, mod, 1)
	require.Nil(t, fault)
	require.Equal(t, "1.0=1", got)
	require.Equal(t, 1, races)
	g.race = func(func() *vm.Fault) bool { return true }
	_, fault = g.run(t, mod, 1)
	require.True(t, fault.Race)
}
