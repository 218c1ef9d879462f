package accept

import (
	"fmt"
	"maps"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/tandem/api"
	"example.com/tandem/api/gpu"
	"example.com/tandem/hw/host"
	"example.com/tandem/hw/inswitch"
	"example.com/tandem/hw/kernels"
	"example.com/tandem/sim/ptx"
)

const aliasFence = "\tfence.proxy.alias;\n"

// program is what the streams of two ranks are given at once: a source and a call,
// perhaps another source and call, and then a copy of the result and one more
// source. The host waits for nothing in between, so a rank learns of its peer
// through flags alone.
type program struct {
	name  string
	calls []programmed
}

type programmed struct {
	kernel string
	args   inswitch.Args
}

// nvlsPrograms are calls of tandem-nvls: one alone, and two that touch the same
// stage first by its own address and then by the other, or the other way round.
func nvlsPrograms() []program {
	reduce := programmed{"nvls_reduce", inswitch.Args{Count: 64, Form: inswitch.SumF32, Log: 2, Blocks: 1, Collective: inswitch.AllReduce}}
	scatter := programmed{"nvls_reduce", inswitch.Args{Count: 32, Form: inswitch.SumF32, Log: 2, Blocks: 1, Collective: inswitch.ReduceScatter}}
	gather := programmed{"nvls_gather", inswitch.Args{Count: 64, Log: 2, Blocks: 1, Collective: inswitch.AllGather}}
	return []program{
		{"one call", []programmed{reduce}}, {"one call", []programmed{gather}},
		{"two calls", []programmed{gather, gather}}, {"two calls", []programmed{reduce, gather}},
		{"two calls", []programmed{gather, reduce}}, {"two calls", []programmed{reduce, reduce}}, {"two calls", []programmed{gather, scatter}},
	}
}

// cascadePrograms are calls by every algorithm, alone and two of them.
func cascadePrograms() (out []program) {
	join, _ := inswitch.JoinOf(api.F32, api.Sum)
	base := inswitch.Args{Count: 64, Form: inswitch.SumF32, Join: join, Log: 2, Blocks: 1, Collective: inswitch.AllReduce}
	var calls []programmed
	for _, c := range []struct {
		algo, flags uint32
		threshold   int64
		count       int64
	}{
		{0, inswitch.FlagSwitch, 0, 64},               // two shots
		{0, inswitch.FlagSwitch, 2048, 64},            // one shot
		{5, inswitch.FlagWorld, 0, 63}, {5, 0, 0, 63}, // recursive exchange, segments
		{5, inswitch.FlagWorld, 0, 64}, // lines
	} {
		a := base
		a.Algo, a.Flags, a.Threshold, a.Count = c.algo, c.flags, c.threshold, c.count
		calls = append(calls, programmed{"cascade_reduce", a})
		out = append(out, program{"one call", calls[len(calls)-1:]})
	}
	// Next to one through the switch, the ways by peers are alike.
	for i := range calls {
		if i < 1 || i == 3 || os.Getenv("TANDEM_EXHAUSTIVE") != "" {
			out = append(out, program{"two calls", []programmed{calls[0], calls[i]}}, program{"two calls", []programmed{calls[i], calls[0]}})
		}
	}
	return out
}

// module is a native module whose fences are dropped.
type module struct {
	name     string
	text     []byte
	kernels  []string
	stage    bool // team memory has a multicast address, else the buffers
	programs []program
}

func modules() []module {
	return []module{
		{"nvls", kernels.NVLS, []string{"nvls_reduce", "nvls_gather"}, true, nvlsPrograms()},
		{"cascade", kernels.Cascade, []string{"cascade_reduce"}, false, cascadePrograms()},
	}
}

// raced runs a program with a text of the module, and reports whether a race
// ended it.
func (m *module) raced(t *testing.T, text string, p program) bool {
	d := ptx.Open(ptx.Options{Devices: 2, Multicast: true})
	choice := inswitch.Default()
	choice.Threads, choice.Native = 32, true
	team, streams, err := inswitch.Open(t.Context(), inswitch.Options{
		Machine: host.NewMachine(d), Team: api.TeamConfig{Ranks: 2}, Choice: choice, Module: m.name, Native: []byte(text),
		Kernels: m.kernels, StageHalf: 96 << 10, StageCast: m.stage,
	})
	require.NoError(t, err)
	src, dst, spare := m.buffers(t, team)
	var casts func(int) (uint64, uint64)
	if !m.stage {
		casts, err = team.Casts(src, dst)
		require.NoError(t, err)
	}
	for _, c := range p.calls {
		for g, s := range streams {
			require.NoError(t, s.Set8(gpu.Ptr(src[g]), 1, half))
		}
		a := c.args
		a.Src, a.Dst = src, dst
		a.Room[inswitch.ObjectSource], a.Room[inswitch.ObjectTarget] = half, half
		launches := team.Launches(c.kernel, a, casts)[0]
		for g, s := range streams {
			require.NoError(t, s.Launch(launches[g]))
		}
	}
	for g, s := range streams {
		require.NoError(t, s.Copy(spare[g], gpu.Ptr(dst[g]), half))
		require.NoError(t, s.Set8(gpu.Ptr(src[g]), 0, half))
	}
	err = gpu.Wait(t.Context(), d.Clock(), time.Minute, streams[0], streams[1])
	if err == nil {
		require.Nil(t, team.Verdicts(&api.Call{Ranks: 2}))
		return false
	}
	require.ErrorContains(t, err, "race")
	return true
}

// half is the bytes of a source, and of a destination.
const half = 2048

func (m *module) buffers(t *testing.T, team *inswitch.Team) (src, dst []uint64, spare []gpu.Ptr) {
	var at []gpu.Ptr
	if !m.stage {
		var err error
		at, err = team.AllocCast(2 * half)
		require.NoError(t, err)
	}
	for _, g := range team.GPUs() {
		if m.stage {
			p, err := g.Context.Alloc(2 * half)
			require.NoError(t, err)
			at = append(at, p)
		}
		p, err := g.Context.Alloc(half)
		require.NoError(t, err)
		spare = append(spare, p)
	}
	for _, p := range at {
		src, dst = append(src, uint64(p)), append(dst, uint64(p)+half)
	}
	return src, dst, spare
}

// shown is, for a kind of alias fence in a kernel, what shows that one is gone,
// and how many of the kind it shows that of. "no run" is where none can, and the
// check of the PTX alone demands the fence:
//
// A report is in memory that has one address. Before a header the kernel has
// touched nothing, and what its stream did before is over, which is as good as an
// alias fence. After the headers nvls_reduce reaches its own stage by its own
// address, and the calls before ended their multicast accesses to it with a
// barrier; other ranks' words it reads behind a barrier more. Where cascade has
// peers exchange data directly, that is in memory without a multicast address;
// its last barrier is what orders the switch's accesses to the caller's buffers,
// for the copy, or kernel, that comes next.
var shown = map[string]int{
	"nvls_reduce before a barrier: one call": 2, "nvls_reduce after a barrier: one call": 2,
	"nvls_gather before a barrier: one call": 1, "nvls_gather after a barrier: one call": 1,
	"nvls_gather after the headers: two calls": 1,
	"nvls_reduce after the headers: no run":    1,
	"nvls_reduce before a header: no run":      1, "nvls_gather before a header: no run": 1,
	"cascade_reduce after the headers: two calls": 1,
	"cascade_reduce before a barrier: one call":   1, "cascade_reduce after a barrier: one call": 1,
	"cascade_reduce before a barrier: no run": 4, "cascade_reduce after a barrier: no run": 4,
	"cascade_reduce before a header: no run": 1,
}

// TestAliasFencesRace drops each alias fence alone. Where a run can show that, the
// virtual GPU says that the kernels race.
func TestAliasFencesRace(t *testing.T) {
	for _, name := range switches {
		t.Setenv(name, "")
	}
	want, got := maps.Clone(shown), map[string]int{}
	for _, m := range modules() {
		if testing.Short() && m.name != "nvls" {
			maps.DeleteFunc(want, func(kind string, _ int) bool { return strings.HasPrefix(kind, m.name) })
			continue
		}
		for _, p := range m.programs {
			require.False(t, m.raced(t, string(m.text), p), "%s %v as it is", m.name, p)
		}
		parts := strings.SplitAfter(string(m.text), aliasFence)
		for n := range len(parts) - 1 {
			kind := kindOf(parts, n)
			if strings.HasSuffix(kind, "a report") {
				continue
			}
			got[kind+": "+m.show(t, parts, n, kind)]++
		}
	}
	require.Equal(t, want, got)
}

// show names the first program that a dropped fence makes race.
func (m *module) show(t *testing.T, parts []string, n int, kind string) string {
	text := strings.Join(parts[:n], "") + strings.TrimSuffix(parts[n], aliasFence) + strings.Join(parts[n+1:], "")
	entry, _, _ := strings.Cut(kind, " ")
	for _, p := range m.programs {
		of := false
		for _, c := range p.calls {
			of = of || c.kernel == entry
		}
		if of && m.raced(t, text, p) {
			return p.name
		}
	}
	return "no run"
}

// kindOf is the kernel of fence n, and the flag that it belongs to: one for a
// flag that is raised is followed by it, one for a flag that was awaited by a
// barrier of the block.
func kindOf(parts []string, n int) string {
	before := strings.Join(parts[:n+1], "")
	kernel := before[strings.LastIndex(before, ".entry ")+len(".entry "):]
	kernel = kernel[:strings.IndexByte(kernel, '(')]
	for line := range strings.Lines(parts[n+1]) {
		if strings.Contains(line, "barrier.cta") {
			break
		}
		if _, ok := strings.CutSuffix(line, "//@release\n"); ok {
			return fmt.Sprintf("%s before %s", kernel, flagOf(line, "a header", "a barrier"))
		}
	}
	at := strings.LastIndex(before, "//@acquire")
	line := before[strings.LastIndexByte(before[:at], '\n')+1 : at]
	return fmt.Sprintf("%s after %s", kernel, flagOf(line, "the headers", "a barrier"))
}

// flagOf tells flags apart: a header is a line, the flag of a barrier a word of 64
// bits, that of a report one of 32.
func flagOf(line, header, barrier string) string {
	switch {
	case strings.Contains(line, ".v2.b64"):
		return header
	case strings.Contains(line, ".b64"):
		return barrier
	}
	return "a report"
}
