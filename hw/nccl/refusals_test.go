package nccl

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/tandem/api"
	"example.com/tandem/api/num"
	"example.com/tandem/hw/host"
)

// TestSettings: what a spec sets is there when communicators are made, and gone
// afterwards.
func TestSettings(t *testing.T) {
	f, l := newFake(2)
	for text, want := range map[string]map[string]string{
		"hw:nccl":                    {"NCCL_PROTO": "LL128", "NCCL_NVLS_ENABLE": "0"},
		"hw:nccl?proto=Simple":       {"NCCL_PROTO": "Simple", "NCCL_NVLS_ENABLE": "0"},
		"hw:nccl?algo=Ring&proto=LL": {"NCCL_PROTO": "LL", "NCCL_ALGO": "Ring", "NCCL_NVLS_ENABLE": "0"},
	} {
		t.Run(text, func(t *testing.T) {
			_, err := session(t, f, l, text, 2)
			require.NoError(t, err)
			require.Equal(t, want, f.seen[len(f.seen)-1])
		})
	}
	t.Run("once", func(t *testing.T) {
		_, err := session(t, f, l, "hw:nccl?max_nchannels=4", 2)
		require.ErrorIs(t, err, api.ErrRefused)
		require.ErrorContains(t, err, "once in a process")
	})
	f, l = newFake(2)
	_, err := session(t, f, l, "hw:nccl?max_nchannels=4", 2)
	require.NoError(t, err)
	require.Equal(t, "4", f.seen[0]["NCCL_MAX_NCHANNELS"])
	require.NotContains(t, f.env.vars, "NCCL_MAX_NCHANNELS")
}

// TestRefusals: what is not there is a typed error that says what would work,
// and nothing reaches the library.
func TestRefusals(t *testing.T) {
	for text, c := range map[string]struct {
		ranks int
		spoil func(*fakeLibrary)
		want  error
		says  string
	}{
		"hw:nccl":                   {3, nil, api.ErrRefused, "one rank to a GPU, and there are 2 GPUs"},
		"hw:nccl?algo=Ring":         {0, nil, api.ErrRefused, "1 to 2"},
		"hw:nccl@2.28":              {2, nil, api.ErrInvalid, "installed"},
		"hw:nccl?nvls=on":           {2, nil, api.ErrInvalid, "known are"},
		"hw:nccl?algo=NVLS":         {2, nil, api.ErrInvalid, "Ring|Tree"},
		"hw:nccl?max_nchannels=65":  {2, nil, api.ErrInvalid, "1..64"},
		"hw:nccl?buffers=fast":      {2, nil, api.ErrInvalid, "plain|registered|symmetric"},
		"hw:nccl?proto=LL":          {2, func(f *fakeLibrary) { f.version = 21803 }, api.ErrUnavailable, "2.18.3"},
		"hw:nccl?buffers=symmetric": {2, func(f *fakeLibrary) { f.version = 23101 }, api.ErrRefused, "2.31.1 makes no multicast objects"},
		"hw:nccl?proto=Simple": {2, func(f *fakeLibrary) {
			f.failInit = &Error{Call: "ncclCommInitAll", Code: 1, Text: "unhandled cuda error"}
		}, ErrLibrary, "unhandled cuda error (1)"},
		"hw:nccl?proto=LL128": {2, func(f *fakeLibrary) {
			f.failGroup = &Error{Call: "ncclAllReduce", Code: 5, Text: "invalid usage", Last: "why"}
		}, ErrLibrary, "invalid usage (5): why"},
	} {
		t.Run(text, func(t *testing.T) {
			f, l := newFake(2)
			if c.spoil != nil {
				c.spoil(f)
			}
			_, err := session(t, f, l, text, c.ranks)
			require.ErrorIs(t, err, c.want)
			require.ErrorContains(t, err, c.says)
		})
	}
	require.NoError(t, (&config{buffers: symmetric}).allowed(firstSymmetric))
	require.Error(t, (&config{buffers: symmetric}).allowed(firstSymmetric-1))
}

func TestRefusedCalls(t *testing.T) {
	f, l := newFake(2)
	team, err := session(t, f, l, "hw:nccl?buffers=symmetric", 2)
	require.NoError(t, err)
	good := api.Call{Collective: api.AllReduce, DType: api.F32, Op: api.Sum, Ranks: 2, Count: 4}
	for says, spoil := range map[string]func(*api.Call){
		"no 16-bit integers":    func(c *api.Call) { c.DType = api.U16 },
		"no bitwise":            func(c *api.Call) { c.DType, c.Op = api.I32, num.Xor },
		"no modes":              func(c *api.Call) { c.Mode = "node" },
		"on a stream":           func(c *api.Call) { c.Scope = api.Block },
		"rank's own block":      func(c *api.Call) { c.Collective, c.InPlace = api.ReduceScatter, api.InPlaceStart },
		"same place":            func(c *api.Call) { c.SrcOffset = api.Offsets{0, 1} },
		"the team has 2":        func(c *api.Call) { c.Ranks = 3 },
		"not defined on":        func(c *api.Call) { c.Op = num.Or },
		"the library has no su": func(c *api.Call) { c.Collective = other{api.AllReduce} },
	} {
		call := good
		spoil(&call)
		_, err := team.Members()[0].Start(call, memory(&call, rand.New(rand.NewPCG(1, 1)))[0])
		require.ErrorContains(t, err, says)
		require.True(t, errors.Is(err, api.ErrRefused) || errors.Is(err, api.ErrInvalid))
	}
	require.Len(t, f.groups, 1)
	eight := api.Call{Collective: api.AllGather, DType: api.E4M3, Ranks: 2}
	require.ErrorContains(t, admit("hw:nccl", eightBits-1, &eight), "no fp8")
	require.NoError(t, admit("hw:nccl", eightBits, &eight))
}

// other is a collective that the library has never heard of.
type other struct{ api.Collective }

// TestFailures: an error of the library poisons the team, aborts what is under
// way, and leaves nothing behind.
func TestFailures(t *testing.T) {
	call := api.Call{Collective: api.AllReduce, DType: api.F32, Op: api.Sum, Ranks: 2, Count: 4}
	rng := rand.New(rand.NewPCG(5, 6))
	boom := &Error{Call: "ncclAllReduce", Code: 2, Text: "unhandled system error"}
	t.Run("group", func(t *testing.T) {
		f, l := newFake(2)
		team, err := session(t, f, l, "hw:nccl", 2)
		require.NoError(t, err)
		f.failGroup = boom
		_, err = api.Run(context.Background(), team, call, memory(&call, rng))
		require.ErrorIs(t, err, ErrLibrary)
		f.failGroup = nil
		_, err = api.Run(context.Background(), team, call, memory(&call, rng))
		require.ErrorIs(t, err, api.ErrAborted)
	})
	t.Run("later", func(t *testing.T) {
		f, l := newFake(2)
		team, err := session(t, f, l, "hw:nccl", 2)
		require.NoError(t, err)
		f.failAsync = boom
		_, err = api.Run(context.Background(), team, call, memory(&call, rng))
		require.ErrorIs(t, err, api.ErrAborted)
		require.ErrorContains(t, err, "unhandled system error")
	})
	t.Run("register", func(t *testing.T) {
		f, l := newFake(2)
		team, err := session(t, f, l, "hw:nccl?buffers=symmetric", 2)
		require.NoError(t, err)
		f.failRegister = boom
		_, err = api.Run(context.Background(), team, call, memory(&call, rng))
		require.ErrorIs(t, err, ErrLibrary)
		f.failRegister = nil
		mem := memory(&call, rng)
		want := expect(&call, mem)
		_, err = api.Run(context.Background(), team, call, mem)
		require.NoError(t, err, "nothing had been launched")
		check(t, &call, mem, want)
	})
	t.Run("deadline", func(t *testing.T) {
		f, l := newFake(2)
		_, err := l.Open(context.Background(), host.NewMachine(f.d), api.Spec{Backend: "hw", Implementation: Name}, api.TeamConfig{Ranks: 2, Arrive: time.Microsecond})
		require.ErrorIs(t, err, api.ErrInvalid)
	})
}

// TestCommunicatorsAreKept: a team that ended well leaves its communicators to
// the next with the same settings.
func TestCommunicatorsAreKept(t *testing.T) {
	f, l := newFake(2)
	for i, c := range []struct {
		text  string
		inits int
	}{{"hw:nccl", 1}, {"hw:nccl?buffers=registered", 1}, {"hw:nccl?proto=LL", 2}, {"hw:nccl", 2}} {
		m := host.NewMachine(f.d)
		spec, err := api.ParseSpec(c.text)
		require.NoError(t, err)
		team, err := l.Open(context.Background(), m, spec, api.TeamConfig{Ranks: 2})
		require.NoError(t, err)
		require.Len(t, f.seen, c.inits, "%d", i)
		require.NoError(t, team.Close(context.Background()))
		require.NoError(t, m.Close())
	}
	require.Len(t, f.comms, 4)
	require.NoError(t, l.Close())
	require.Empty(t, f.comms)
}

// TestGrowing: buffers that grow are lent once for each size.
func TestGrowing(t *testing.T) {
	f, l := newFake(2)
	team, err := session(t, f, l, "hw:nccl?buffers=registered", 2)
	require.NoError(t, err)
	rng := rand.New(rand.NewPCG(7, 8))
	for _, n := range []int64{1, 1 << 20, 5, 1 << 21, 1 << 20} {
		call := api.Call{Collective: api.AllGather, DType: api.U8, Ranks: 2, Count: n}
		mem := memory(&call, rng)
		want := expect(&call, mem)
		_, err := api.Run(context.Background(), team, call, mem)
		require.NoError(t, err)
		check(t, &call, mem, want)
	}
	require.LessOrEqual(t, len(f.registered), 6)
}

func TestLoading(t *testing.T) {
	env := &fakeEnv{vars: map[string]string{}}
	var asked []string
	l := New(Options{Env: env, open: func(file, driver string) (library, error) {
		asked = append(asked, file)
		return nil, errors.New(file + ": cannot open shared object file")
	}})
	d := l.Describe()
	require.Equal(t, "libnccl.so.2: cannot open shared object file", d.Unavailable)
	_, err := l.Open(context.Background(), nil, api.Spec{Backend: "hw", Implementation: Name}, api.TeamConfig{Ranks: 2})
	require.ErrorIs(t, err, api.ErrUnavailable)
	require.ErrorContains(t, err, DirEnv)
	require.Len(t, asked, 1, "asked for once")

	env.vars[DirEnv] = "/some/where"
	require.Contains(t, New(Options{Env: env, open: l.opts.open}).Describe().Unavailable, filepath.Join("/some/where", soname))
	require.Contains(t, New(Options{Env: env, Library: "mine.so", open: l.opts.open}).Describe().Unavailable, "mine.so")
	env.err = errors.New("read-only")
	require.Contains(t, New(Options{Env: env, open: l.opts.open}).Describe().Unavailable, "NCCL_NVLS_ENABLE=0 cannot be set")

	_, l = newFake(1)
	require.Contains(t, l.Describe().Summary, "NCCL 2.28.3")
	require.Empty(t, l.Describe().Unavailable)
	require.Len(t, l.Describe().DTypes, len(dtypes))
	for _, p := range l.Describe().Params {
		require.True(t, new(config).set(p.Name, p.Default), fmt.Sprint(p))
	}
}
