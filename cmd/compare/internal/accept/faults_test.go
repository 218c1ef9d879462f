package accept

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/tandem/api"
	"example.com/tandem/api/gpu"
	"example.com/tandem/hw"
	"example.com/tandem/hw/host"
	"example.com/tandem/hw/inswitch"
	"example.com/tandem/hw/kernels"
	"example.com/tandem/sim/ptx"
)

// TestMulticastIsRefused: where a switch of the environment, the attribute or the
// number of GPUs says no, multicast=on is an error, and nothing was created.
func TestMulticastIsRefused(t *testing.T) {
	for _, name := range switches {
		t.Setenv(name, "")
	}
	open := func(o ptx.Options, implementation, version string, ranks int) error {
		d := ptx.Open(o)
		b := hw.New("ptx", d)
		_, err := b.Open(t.Context(), api.Spec{Backend: "ptx", Implementation: implementation, Version: version, Params: map[string]string{"multicast": "on", "threads": "32"}}, api.TeamConfig{Ranks: ranks})
		require.NoError(t, b.Close())
		require.NoError(t, d.Close(), "nothing is left")
		return err
	}
	for implementation, version := range map[string]string{"tandem-nvls": "", "cascade": "pr131"} {
		err := open(ptx.Options{Devices: 2}, implementation, version, 2)
		require.ErrorIs(t, err, api.ErrUnavailable)
		require.ErrorContains(t, err, "multicast=off")
		require.ErrorContains(t, err, "needs TANDEM_MULTICAST=1", "multicast=on was asked for, and alone is not enough")
		err = open(ptx.Options{Devices: 2, Multicast: true}, implementation, version, 3)
		require.ErrorContains(t, err, "a GPU for each rank")
		for name, off := range map[string]string{switches[0]: "0", switches[1]: "1", switches[2]: "1"} {
			t.Setenv(name, off)
			err := open(ptx.Options{Devices: 2, Multicast: true}, implementation, version, 2)
			require.ErrorIs(t, err, api.ErrUnavailable)
			require.ErrorContains(t, err, name+"="+off)
			t.Setenv(name, "")
		}
	}
}

// TestStoppedRanks: a rank that stops at any step ends the call of all within the
// deadline, and is the one that is blamed; one that makes another call is a
// mismatch, and the team takes no more calls.
func TestStoppedRanks(t *testing.T) {
	call := api.Call{Collective: api.AllReduce, DType: api.BF16, Op: api.Sum, Ranks: 2, Count: 100}
	for _, spec := range []string{"tandem-nvls", "cascade@pr131"} {
		steps := []inswitch.Step{inswitch.StepHeader, inswitch.StepAgreed, inswitch.StepData, inswitch.StepBarrier}
		if spec != "tandem-nvls" {
			steps = steps[1:3]
		}
		faults := []inswitch.Fault{{Rank: 1, Differ: true}}
		for _, s := range steps {
			faults = append(faults, inswitch.Fault{Rank: 1, Step: s})
		}
		d := ptx.Open(ptx.Options{Devices: 2})
		b := hw.New("ptx", d)
		for n, f := range faults {
			if testing.Short() && n > 2 {
				continue
			}
			s, err := api.ParseSpec("ptx:" + spec + "?threads=32")
			require.NoError(t, err)
			team, err := b.Open(t.Context(), s, api.TeamConfig{Ranks: 2, Arrive: 20 * time.Millisecond, Progress: 20 * time.Millisecond})
			require.NoError(t, err)
			team.(*host.Team).Engine().(interface{ Inject(*inswitch.Fault) }).Inject(&f)
			mem := []api.Memory{images(&call, 0, 1, near), images(&call, 1, 1, near)}
			start := d.Clock().Now()
			_, err = api.Run(t.Context(), team, call, mem)
			require.Less(t, d.Clock().Now()-start, time.Second)
			var a *api.Aborted
			if f.Differ {
				require.ErrorIs(t, err, api.ErrMismatch)
			} else {
				require.True(t, errors.As(err, &a), "%v at %v: %v", spec, f.Step, err)
				require.Equal(t, 1, a.Cause, "%v at %v: %v", spec, f.Step, err)
			}
			_, err = api.Run(t.Context(), team, call, mem)
			require.ErrorIs(t, err, api.ErrAborted, "the team is poisoned")
			require.NoError(t, team.Close(t.Context()))
		}
		require.NoError(t, b.Close())
	}
}

// TestEmulationRefuses: what no hardware would take ends the emulated kernels
// too: words at other than their multiple, addresses beyond the object, forms
// that do not exist.
func TestEmulationRefuses(t *testing.T) {
	const tag = 0x4D43000000000000
	for name, change := range map[string]func(*inswitch.Args){
		"misaligned":    func(a *inswitch.Args) { a.Cast[inswitch.ObjectStage], a.Room[inswitch.ObjectStage] = tag+4, 1<<20 },
		"beyond":        func(a *inswitch.Args) { a.Cast[inswitch.ObjectStage], a.Room[inswitch.ObjectStage] = tag, 2048 },
		"no such form":  func(a *inswitch.Args) { a.Form = inswitch.XorB64 + 1 },
		"no such range": func(a *inswitch.Args) { a.Cast[inswitch.ObjectStage] = tag + 7<<44 },
		"right":         func(*inswitch.Args) {},
	} {
		d := ptx.Open(ptx.Options{})
		m := host.NewMachine(d)
		choice := inswitch.Default()
		choice.Threads = 32
		team, streams, err := inswitch.Open(t.Context(), inswitch.Options{
			Machine: m, Team: api.TeamConfig{Ranks: 2}, Choice: choice, Module: "nvls", Native: kernels.NVLS, Emulated: kernels.NVLSEmulated,
			Kernels: []string{"nvls_reduce"}, StageHalf: 1 << 17, StageCast: true,
		})
		require.NoError(t, err)
		c := team.GPUs()[0].Context
		p, err := c.Alloc(4096)
		require.NoError(t, err)
		require.NoError(t, streams[0].Set8(p, 0, 4096))
		at := []uint64{uint64(p), uint64(p) + 1024}
		a := inswitch.Args{Count: 64, Src: at, Dst: []uint64{at[0] + 2048, at[1] + 2048}, Form: inswitch.SumBF16, Log: 1, Blocks: 1}
		change(&a)
		require.NoError(t, streams[0].Launch(team.Launches("nvls_reduce", a, nil)[0][0]))
		err = gpu.Wait(t.Context(), d.Clock(), time.Minute, streams[0])
		if name == "right" {
			require.NoError(t, err)
			require.Nil(t, team.Verdicts(&api.Call{Ranks: 2}))
			continue
		}
		require.ErrorContains(t, err, "trap", name)
	}
}
