package accept

import (
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

// raced makes a call of two ranks with the native kernels, one of whose alias
// fences is gone, and reports whether a race ended it.
func raced(t *testing.T, number int, kernel string, collective uint32) bool {
	parts := strings.SplitAfter(string(kernels.NVLS), aliasFence)
	parts[number] = strings.TrimSuffix(parts[number], aliasFence)
	d := ptx.Open(ptx.Options{Devices: 2, Multicast: true})
	choice := inswitch.Default()
	choice.Threads, choice.Native = 32, true
	team, streams, err := inswitch.Open(t.Context(), inswitch.Options{
		Machine: host.NewMachine(d), Team: api.TeamConfig{Ranks: 2}, Choice: choice, Module: "nvls", Native: []byte(strings.Join(parts, "")),
		Kernels: []string{kernel}, StageHalf: 1 << 16, StageCast: true,
	})
	require.NoError(t, err)
	a := inswitch.Args{Count: 64, Form: inswitch.SumF32, Log: 2, Blocks: 1, Collective: collective}
	for g, s := range streams {
		p, err := team.GPUs()[g].Context.Alloc(4096)
		require.NoError(t, err)
		require.NoError(t, s.Set8(p, 0, 4096))
		a.Src, a.Dst = append(a.Src, uint64(p)), append(a.Dst, uint64(p)+2048)
	}
	launches := team.Launches(kernel, a, nil)[0]
	for g, s := range streams {
		require.NoError(t, s.Launch(launches[g]))
	}
	err = gpu.Wait(t.Context(), d.Clock(), time.Minute, streams[0], streams[1])
	if err == nil {
		require.Nil(t, team.Verdicts(&api.Call{Ranks: 2}))
		return false
	}
	require.ErrorContains(t, err, "race")
	return true
}

// TestAliasFencesRace: each alias fence around a barrier between ranks that is
// dropped lets the kernels race, and the virtual GPU says so. Those beside
// headers and reports order nothing that this kernel reaches by both addresses:
// the check of the PTX holds them to the rule.
func TestAliasFencesRace(t *testing.T) {
	for _, name := range switches {
		t.Setenv(name, "")
	}
	text := string(kernels.NVLS)
	parts := strings.SplitAfter(text, aliasFence)
	at, places := 0, map[string]int{}
	for n := range len(parts) - 1 {
		at += len(parts[n])
		if !aroundBarrier(text, at) {
			continue
		}
		kernel, collective := "nvls_reduce", uint32(inswitch.AllReduce)
		if entry := strings.LastIndex(text[:at], ".entry "); strings.HasPrefix(text[entry:], ".entry nvls_gather(") {
			kernel, collective = "nvls_gather", inswitch.AllGather
		}
		places[kernel]++
		require.True(t, raced(t, n, kernel, collective), "alias fence %d, at byte %d, of %s is missed by nobody", n, at, kernel)
	}
	require.Equal(t, map[string]int{"nvls_reduce": 4, "nvls_gather": 2}, places, "two for each barrier")
	require.False(t, raced(t, 0, "nvls_reduce", inswitch.AllReduce), "that of a report is nobody's")
}

// aroundBarrier reports whether the flag nearest to a place is one of a barrier:
// a word of 64 bits, where a header is a line and a report a word of 32.
func aroundBarrier(text string, at int) bool {
	after := strings.Index(text[at:], "//@")
	before := strings.LastIndex(text[:at], "//@")
	line := func(i int) string {
		start := strings.LastIndexByte(text[:i], '\n') + 1
		return text[start : i+strings.IndexByte(text[i:], '\n')]
	}
	// A fence for a flag that is raised is followed by it; one for a flag that was
	// awaited follows it, with nothing but polling in between.
	if after >= 0 {
		if next := line(at + after); strings.Contains(next, "@release") && after < 400 {
			return strings.Contains(next, ".global.b64")
		}
	}
	return before >= 0 && strings.Contains(line(before), "ld.relaxed.sys.global.b64")
}
