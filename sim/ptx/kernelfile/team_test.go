package kernelfile_test

import (
	"context"
	"encoding/binary"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/tandem/api"
	"example.com/tandem/sim/ptx/kernelfile"
)

const head = ".version 8.4\n.target sm_90\n.address_size 64\n"

// gather sends the rank's words to every peer, through pointers that come as an
// array in memory (p), or as the parameter itself (v).
const gather = head + `
.visible .entry p(.param .u64 src, .param .u64 dst, .param .u32 count, .param .u8 rank, .param .u16 ranks) {
	.reg .b64 %d<9>; .reg .b32 %r<9>; .reg .b16 %h; .reg .pred %p;
	ld.param.u64 %d1, [src]; ld.param.u64 %d2, [dst]; ld.param.u32 %r1, [count]; ld.param.u8 %r2, [rank]; ld.param.u16 %r3, [ranks];
	mov.u32 %r4, %tid.x; setp.ge.u32 %p, %r4, %r1; @%p bra E;
	mad.wide.u32 %d1, %r4, 4, %d1; ld.global.b32 %r5, [%d1]; mad.lo.u32 %r6, %r1, %r2, %r4; mul.wide.u32 %d4, %r6, 4;
L:	ld.global.b64 %d3, [%d2]; add.s64 %d3, %d3, %d4; st.global.b32 [%d3], %r5;
	add.s64 %d2, %d2, 8; sub.u32 %r3, %r3, 1; setp.ne.u32 %p, %r3, 0; @%p bra L;
E:	ret; }
.visible .entry v(.param .u64 src, .param .align 8 .b8 dst[24], .param .u32 count, .param .u8 rank, .param .u16 ranks) {
	.reg .b64 %d<9>; .reg .b32 %r<9>; .reg .pred %p;
	ld.param.u64 %d1, [src]; ld.param.u32 %r1, [count]; ld.param.u8 %r2, [rank];
	mov.u32 %r4, %tid.x; setp.ge.u32 %p, %r4, %r1; @%p bra E;
	mad.wide.u32 %d1, %r4, 4, %d1; ld.global.b32 %r5, [%d1]; mad.lo.u32 %r6, %r1, %r2, %r4; mul.wide.u32 %d4, %r6, 4;
	ld.param.u64 %d3, [dst]; add.s64 %d3, %d3, %d4; st.global.b32 [%d3], %r5;
	ld.param.u64 %d3, [dst+8]; add.s64 %d3, %d3, %d4; st.global.b32 [%d3], %r5;
	ld.param.u64 %d3, [dst+16]; add.s64 %d3, %d3, %d4; st.global.b32 [%d3], %r5;
E:	ret; }
`

const gatherArgs = `{"collective": "all_gather", "dtypes": "u32", "block": 64, "sources": "all", "params": ["src", "all.dst", "count", "rank", "ranks"]}`

// cast adds floats in the switch, each block of a rank its share.
const cast = head + `
.visible .entry k(.param .u64 src, .param .u64 dst, .param .u64 own, .param .u32 count) {
	.reg .b64 %d<9>; .reg .b32 %r<9>; .reg .pred %p;
	ld.param.u64 %d1, [src]; ld.param.u64 %d2, [dst]; ld.param.u32 %r1, [count];
	mov.u32 %r4, %tid.x; setp.ge.u32 %p, %r4, %r1; @%p bra E;
	mul.wide.u32 %d4, %r4, 4; add.s64 %d1, %d1, %d4; add.s64 %d2, %d2, %d4;
	multimem.ld_reduce.relaxed.sys.global.add.f32 %r5, [%d1];
	st.global.b32 [%d2], %r5;
E:	ret; }
`

const castArgs = `{"collective": "all_reduce", "dtypes": "f32", "ops": "sum", "block": 64, "sources": "all", "scratch": {"own": 4},
"params": ["multicast.src", "dst", "own", "count"]}`

// write puts a kernel and its description into a folder and gives a spec.
func write(t *testing.T, ptx, args, query string) api.Spec {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "k.ptx"), []byte(ptx), 0o644))
	if args != "" {
		require.NoError(t, os.WriteFile(filepath.Join(dir, "k.json"), []byte(args), 0o644))
	}
	spec, err := api.ParseSpec("ptx:" + filepath.Join(dir, "k.ptx") + query)
	require.NoError(t, err)
	return spec
}

// images are sources that hold rank<<8 + index, and poisoned destinations.
func images(call *api.Call, offset int) []api.Memory {
	mem := make([]api.Memory, call.Ranks)
	image := func(base uint64, elems int64) api.Image {
		b := make([]byte, 16+4*elems+16)
		for i := range b {
			b[i] = 0xA5
		}
		return api.Image{Bytes: b, Addr: base + uint64(4*offset), Guard: 16}
	}
	for r := range mem {
		src, dst := image(api.SrcBase, call.SrcElems(0)), image(api.DstBase, call.DstElems(0))
		for i := range call.SrcElems(0) {
			binary.LittleEndian.PutUint32(src.Payload()[4*i:], uint32(r)<<8+uint32(i))
		}
		mem[r] = api.Memory{{Src: src, Dst: dst}}
	}
	return mem
}

// TestPointers: arrays of addresses, in memory and as the parameter, and
// integers of every width.
func TestPointers(t *testing.T) {
	for _, entry := range []string{"p", "v"} {
		team, err := kernelfile.Open(t.Context(), write(t, gather, gatherArgs, "?entry="+entry), api.TeamConfig{Ranks: 3})
		require.NoError(t, err)
		call := api.Call{Collective: api.AllGather, DType: api.U32, Ranks: 3, Count: 37}
		for offset := range 3 { // the team is used again
			mem := images(&call, offset)
			_, err = api.Run(t.Context(), team, call, mem)
			require.NoError(t, err)
			for r := range mem {
				out := mem[r][0].Dst
				for i := range 3 * 37 {
					require.Equal(t, uint32(i/37)<<8+uint32(i%37), binary.LittleEndian.Uint32(out.Payload()[4*i:]))
				}
				require.Equal(t, byte(0xA5), out.Bytes[15])
				require.Equal(t, byte(0xA5), out.Bytes[len(out.Bytes)-16])
			}
		}
		require.NoError(t, team.Close(t.Context()))
	}
}

// TestSources: without a barrier of its own the kernel is right only where the
// host has made one.
func TestSources(t *testing.T) {
	call := api.Call{Collective: api.AllGather, DType: api.U32, Ranks: 3, Count: 4}
	team, err := kernelfile.Open(t.Context(), write(t, gather, strings.Replace(gatherArgs, `"all"`, `"own"`, 1), "?entry=p"), api.TeamConfig{Ranks: 3})
	require.NoError(t, err)
	_, err = api.Run(t.Context(), team, call, images(&call, 0))
	var fault *api.Fault
	require.ErrorAs(t, err, &fault)
	require.Equal(t, api.FaultRace, fault.Kind)
	_, err = team.Members()[0].Start(call, images(&call, 0)[0])
	require.ErrorIs(t, err, api.ErrAborted)
	require.ErrorContains(t, err, "an earlier call ended the team")
	require.NoError(t, team.Close(t.Context()))
}

// TestMulticast: one address for the buffers of all ranks.
func TestMulticast(t *testing.T) {
	spec := write(t, cast, castArgs, "")
	team, err := kernelfile.Open(t.Context(), spec, api.TeamConfig{Ranks: 4})
	require.NoError(t, err)
	call := api.Call{Collective: api.AllReduce, DType: api.F32, Op: api.Sum, Ranks: 4, Count: 9}
	mem := images(&call, 1)
	for r := range mem {
		for i := range 9 {
			binary.LittleEndian.PutUint32(mem[r][0].Src.Payload()[4*i:], 0x3F800000) // 1
		}
	}
	_, err = api.Run(t.Context(), team, call, mem)
	require.NoError(t, err)
	for r := range mem {
		for i := range 9 {
			require.Equal(t, uint32(0x40800000), binary.LittleEndian.Uint32(mem[r][0].Dst.Payload()[4*i:]))
		}
	}
	mem = images(&call, 1)
	mem[2] = images(&call, 2)[2]
	_, err = api.Run(t.Context(), team, call, mem)
	require.ErrorIs(t, err, api.ErrRefused)
	require.ErrorContains(t, err, "offsets of rank 2 other than rank 0's")
	require.NoError(t, team.Close(t.Context()))

	t.Setenv("NCCL_NVLS_ENABLE", "0")
	team, err = kernelfile.Open(t.Context(), spec, api.TeamConfig{Ranks: 4})
	require.NoError(t, err)
	_, err = api.Run(t.Context(), team, call, images(&call, 0))
	require.ErrorIs(t, err, api.ErrUnavailable)
	require.ErrorContains(t, err, "NCCL_NVLS_ENABLE=0")
}

// TestOpenErrors: what a kernel and its description do not agree on.
func TestOpenErrors(t *testing.T) {
	for _, c := range []struct{ ptx, args, query, want string }{
		{gather, gatherArgs, "", `entry "": no such kernel in`},
		{gather, gatherArgs, "?entry=q", "entry=p or entry=v"},
		{gather, "", "?entry=p", "k.json\": there is no such file"},
		{gather, gatherArgs, "?entry=p&args=/", "it is no file"},
		{gather, gatherArgs, "?entry=p&steps=0", `steps "0": not a value`},
		{gather, gatherArgs, "?entry=p&seed=x", `seed "x": not a value`},
		{gather, gatherArgs, "?entry=p&foo=x", "no such parameter"},
		{gather, strings.Replace(gatherArgs, `"src", `, "", 1), "?entry=p", "k.json:1: 4 parameters, the kernel p takes 5"},
		{gather, strings.Replace(gatherArgs, `"src", `, `"rank", `, 1), "?entry=p", ""},
		{gather, strings.Replace(gatherArgs, `"count"`, `"src"`, 1), "?entry=p", "k.json:1: parameter 2: an address has 8 bytes, the kernel takes 4"},
		{gather, strings.Replace(gatherArgs, `"count"`, `{"f64": 1}`, 1), "?entry=p", "parameter 2: the number has 8 bytes, the kernel takes 4"},
		{gather, strings.Replace(gatherArgs, `"rank"`, `300`, 1), "?entry=p", "k.json:1: 300 does not fit the 1 bytes of parameter 3"},
		{gather, strings.Replace(gatherArgs, `"rank"`, `-128`, 1), "?entry=p", ""},
		{gather, strings.Replace(gatherArgs, `"all.dst"`, `"dst"`, 1), "?entry=v", "parameter 1: an address has 8 bytes, the kernel takes 24"},
		{gather, strings.Replace(gatherArgs, `"all.dst"`, `7`, 1), "?entry=v", "parameter 1: an integer has 1, 2, 4 or 8 bytes"},
		{strings.Replace(gather, "dst[24]", "dst[16]", 1), gatherArgs, "?entry=v", "neither an address nor 3 of them"},
		{gather, strings.Replace(gatherArgs, `64`, `64, "grid": 99999, "cooperative": true`, 1), "?entry=p", "k.json:1: 99999 blocks that run together, 4224 fit on 132"},
		{gather, strings.Replace(gatherArgs, `64`, `64, "shared": 999999`, 1), "?entry=p", "999999 bytes of dynamic shared memory"},
		{gather, strings.Replace(gatherArgs, `64`, `64, "ranks": [4, 8]`, 1), "?entry=p", "says it takes 4 to 8"},
		{strings.Replace(gather, "ret;", "rut;", 1), gatherArgs, "?entry=p", "k.ptx:12: rut: unknown instruction"},
		{strings.Replace(gather, "ret;", "ret", 1), gatherArgs, "?entry=p", "k.ptx:12: "},
		{strings.ReplaceAll(gather, ".entry", ".func"), gatherArgs, "", "it has no .entry"},
	} {
		team, err := kernelfile.Open(t.Context(), write(t, c.ptx, c.args, c.query), api.TeamConfig{Ranks: 3})
		if c.want == "" {
			require.NoError(t, err)
			require.NoError(t, team.Close(t.Context()))
			continue
		}
		require.ErrorContains(t, err, c.want)
	}
}

// TestRefusals: what the description does not claim, and calls that differ.
func TestRefusals(t *testing.T) {
	team, err := kernelfile.Open(t.Context(), write(t, gather, strings.Replace(gatherArgs, `64`, `64, "multiple": 4`, 1), "?entry=p"), api.TeamConfig{Ranks: 3})
	require.NoError(t, err)
	good := api.Call{Collective: api.AllGather, DType: api.U32, Ranks: 3, Count: 4}
	for want, change := range map[string]func(*api.Call){
		"the kernel is all_gather":         func(c *api.Call) { c.Collective, c.Root = api.Broadcast, 0 },
		"the kernel takes [u32]":           func(c *api.Call) { c.DType = api.F32 },
		"the kernel takes [false]":         func(c *api.Call) { c.InPlace = api.InPlaceOwn },
		"the kernel takes multiples of 4":  func(c *api.Call) { c.Count = 6 },
		"a kernel of one's own is on a":    func(c *api.Call) { c.Scope = api.Block },
		"a kernel of one's own has no mod": func(c *api.Call) { c.Mode = "node" },
		"the team has 3":                   func(c *api.Call) { c.Ranks = 2 },
	} {
		call := good
		change(&call)
		_, err := team.Members()[0].Start(call, images(&call, 0)[0])
		require.ErrorContains(t, err, want)
	}
	mem := images(&good, 0)
	first, err := team.Members()[0].Start(good, mem[0])
	require.NoError(t, err)
	_, err = team.Members()[0].Start(good, mem[0])
	require.ErrorIs(t, err, api.ErrRefused)
	other := good
	other.Count = 8
	_, err = team.Members()[1].Start(other, images(&other, 0)[1])
	require.ErrorIs(t, err, api.ErrMismatch)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = first.Wait(ctx)
	require.ErrorIs(t, err, context.Canceled)
	_, err = api.Run(t.Context(), team, good, mem)
	require.NoError(t, err, "a call that was withdrawn is forgotten")
	require.NoError(t, team.Close(t.Context()))
	_, err = team.Members()[0].Start(good, mem[0])
	require.ErrorIs(t, err, api.ErrAborted)
}

// TestHangs: a kernel that does not end is a fault of a rank, whether it polls,
// watches the clock or only runs.
func TestHangs(t *testing.T) {
	for loop, want := range map[string]string{
		"L: bra L;": "still running after 100000 instructions",
		"L: ld.relaxed.sys.global.b32 %r1, [%d1]; setp.ne.u32 %p, %r1, 77; @%p bra L;": "deadlock: rank 0 block 0 thread 0 polls",
		"L: mov.u64 %d2, %clock64; setp.ne.u64 %p, %d2, 1; @%p bra L;":                 "of virtual time have passed, and the kernels of ranks 0, 1, 2 run",
		"trap;": "trap",
	} {
		ptx := head + ".visible .entry k(.param .u64 src) { .reg .b64 %d<3>; .reg .b32 %r<2>; .reg .pred %p; ld.param.u64 %d1, [src];\n" + loop + "\nret; }\n"
		query := "?steps=100000"
		cfg := api.TeamConfig{Ranks: 3}
		switch {
		case strings.Contains(loop, "ld."):
			query = ""
		case strings.Contains(loop, "clock"):
			query, cfg.Progress = "", 50*time.Millisecond
		}
		team, err := kernelfile.Open(t.Context(), write(t, ptx, strings.Replace(gatherArgs, `"src", "all.dst", "count", "rank", "ranks"`, `"src"`, 1), query), cfg)
		require.NoError(t, err)
		call := api.Call{Collective: api.AllGather, DType: api.U32, Ranks: 3, Count: 1}
		_, err = api.Run(t.Context(), team, call, images(&call, 0))
		var fault *api.Fault
		require.ErrorAs(t, err, &fault, loop)
		require.ErrorContains(t, err, want)
		kind := api.FaultHang
		if loop == "trap;" {
			kind = api.FaultAssert
		}
		require.Equal(t, kind, fault.Kind)
	}
}
