package child

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/tandem/api"
	"example.com/tandem/api/gpu"
	"example.com/tandem/sim"
	"example.com/tandem/sim/rlkernel"
	"example.com/tandem/sim/tandem"
)

func backend() api.Backend { return sim.New(rlkernel.Family{}, tandem.Family{}) }

// mode makes this test binary a child.
const mode = "TANDEM_TEST_CHILD"

func TestMain(m *testing.M) {
	switch os.Getenv(mode) {
	case "":
		os.Exit(m.Run())
	case "serve":
		err := Serve(context.Background(), os.Stdin, os.Stdout, func(ctx context.Context, s api.Spec, t api.TeamConfig) (api.Team, error) {
			for _, e := range gpu.MulticastOffEnv() {
				if name, value, _ := strings.Cut(e, "="); os.Getenv(name) != value {
					return nil, fmt.Errorf("%s is not set", e)
				}
			}
			return backend().Open(ctx, s, t)
		})
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	case "rubbish":
		fmt.Println("this is no answer, and no greeting")
		_, _ = io.Copy(io.Discard, os.Stdin)
	case "dies":
		fmt.Fprintln(os.Stderr, "out of luck")
		os.Exit(7)
	}
}

func open(t *testing.T, as, spec string, ranks int) (*Team, error) {
	t.Setenv(mode, as)
	exe, err := os.Executable()
	require.NoError(t, err)
	s, err := api.ParseSpec(spec)
	require.NoError(t, err)
	return Open(context.Background(), exe, []string{"child"}, s, api.TeamConfig{Ranks: ranks})
}

const guard = 32

// memory is poisoned and guarded; in place the smaller buffer is a part of the
// larger.
func memory(call *api.Call, rank int) api.Memory {
	var mem api.Memory
	for i := range call.Lanes() {
		size := int64(call.Lane(i).DType.Size())
		src, dst := call.Addrs(i, rank)
		image := func(addr uint64, n int64) api.Image {
			return api.Image{Bytes: bytes.Repeat([]byte{0xee}, int(n)+2*guard), Addr: addr, Guard: guard}
		}
		inside := func(m api.Image, addr uint64, n int64) api.Image {
			at := int64(addr-m.Addr) + guard
			return api.Image{Bytes: m.Bytes[at : at+n], Addr: addr}
		}
		n, m := call.SrcElems(i)*size, call.DstElems(i)*size
		l := api.Lane{}
		switch {
		case call.InPlace == api.OutOfPlace:
			l.Src, l.Dst = image(src, n), image(dst, m)
		case n >= m:
			l.Src = image(src, n)
			l.Dst = inside(l.Src, dst, m)
		default:
			l.Dst = image(dst, m)
			l.Src = inside(l.Dst, src, n)
		}
		for k, p := 0, l.Src.Payload(); k < len(p); k++ {
			p[k] = byte(k*7 + rank*13 + i)
		}
		mem = append(mem, l)
	}
	return mem
}

func run(t *testing.T, team api.Team, call api.Call) ([]api.Memory, []api.Outcome, error) {
	t.Helper()
	var mem []api.Memory
	for r := range call.Ranks {
		mem = append(mem, memory(&call, r))
	}
	out, err := api.Run(context.Background(), team, call, mem)
	return mem, out, err
}

// TestSameAsHere: a child gives back what the backend gives here, guards and
// coverage included.
func TestSameAsHere(t *testing.T) {
	there, err := open(t, "serve", "sim:tandem", 4)
	require.NoError(t, err)
	here, err := backend().Open(context.Background(), api.Spec{Backend: "sim", Implementation: "tandem"}, api.TeamConfig{Ranks: 4})
	require.NoError(t, err)
	for _, call := range []api.Call{
		{Collective: api.AllReduce, DType: api.BF16, Op: api.Sum, Ranks: 4, Count: 100},
		{Collective: api.AllReduce, DType: api.BF16, Op: api.Sum, Ranks: 4, Count: 33, InPlace: api.InPlaceOwn, SrcOffset: api.Offsets{1}, DstOffset: api.Offsets{1}},
		{Collective: api.AllReduce, DType: api.F32, Op: api.Max, Ranks: 4},
		{Collective: api.ReduceScatter, DType: api.I32, Op: api.Sum, Ranks: 4, Count: 9, InPlace: api.InPlaceOwn},
		{Collective: api.ReduceScatter, DType: api.I32, Op: api.Sum, Ranks: 4, Count: 9, InPlace: api.InPlaceStart},
		{Collective: api.AllGather, DType: api.U8, Ranks: 4, Count: 77, SrcOffset: api.Offsets{0, 1, 2, 3}, DstOffset: api.Offsets{3}},
		{Collective: api.AllGather, DType: api.U8, Ranks: 4, Count: 77, InPlace: api.InPlaceOwn},
		{Collective: api.Broadcast, DType: api.F64, Ranks: 4, Count: 5, Root: 2},
		{Collective: api.AllGatherMany, DType: api.U8, Ranks: 4, Many: []api.LaneShape{{Count: 4}, {}, {DType: api.F32, Count: 3}}},
	} {
		want, covered, err := run(t, here, call)
		require.NoError(t, err)
		got, outcomes, err := run(t, there, call)
		require.NoError(t, err, "%s", call)
		require.Equal(t, want, got, "%s", call)
		require.Equal(t, covered, outcomes, "%s", call)
	}
	require.NoError(t, here.Close(context.Background()))
	require.NoError(t, there.Close(context.Background()))
	require.NoError(t, there.Close(context.Background()), "twice")
	require.Zero(t, there.cmd.ProcessState.ExitCode())
}

// TestErrorsKeepTheirTypes, of opening, starting and waiting.
func TestErrorsKeepTheirTypes(t *testing.T) {
	_, err := open(t, "serve", "sim:mystery", 2)
	require.ErrorIs(t, err, api.ErrInvalid)
	_, err = open(t, "serve", "sim:rlkernel@8ccb03c", 3)
	var refused *api.Refused
	require.ErrorAs(t, err, &refused)
	require.Contains(t, refused.Reason, "1, 2, 4 or 8")

	team, err := open(t, "serve", "sim:rlkernel@8ccb03c", 2)
	require.NoError(t, err)
	call := api.Call{Collective: api.AllReduce, DType: api.BF16, Op: api.Max, Ranks: 2, Count: 4}
	_, _, err = run(t, team, call)
	require.ErrorIs(t, err, api.ErrRefused)
	call.Op, call.DstOffset = api.Sum, api.Offsets{0, 1}
	_, _, err = run(t, team, call)
	var fault *api.Fault
	require.ErrorAs(t, err, &fault)
	require.Equal(t, api.FaultMisaligned, fault.Kind)
	require.Equal(t, 1, fault.Rank)
	mem := memory(&call, 0)
	mem[0].Dst.Bytes = mem[0].Dst.Bytes[:len(mem[0].Dst.Bytes)-1]
	_, err = team.Members()[0].Start(call, mem)
	require.ErrorIs(t, err, api.ErrInvalid)
	require.NoError(t, team.Close(context.Background()))
	for _, err := range []error{nil, &api.Unavailable{Spec: "x"}, &api.Mismatch{Rank: 1}, &api.Aborted{Cause: 3, Chain: []int{1, 3}}, &api.InvalidError{Field: "f"}} {
		require.Equal(t, err, failureOf(err).err())
	}
	require.EqualError(t, failureOf(errors.New("other")).err(), "other")
}

// TestChildrenThatGoWrong: whatever becomes of the process, the caller has an
// error, and no process is left.
func TestChildrenThatGoWrong(t *testing.T) {
	for as, says := range map[string]string{"rubbish": "this is no answer", "dies": "out of luck"} {
		begun := time.Now()
		_, err := open(t, as, "sim:tandem", 2)
		require.ErrorContains(t, err, says)
		require.Less(t, time.Since(begun), 20*time.Second)
	}
	_, err := Open(context.Background(), "/nonexistent", []string{"x"}, api.Spec{}, api.TeamConfig{})
	require.ErrorContains(t, err, "starting a child process")

	team, err := open(t, "serve", "sim:tandem", 2)
	require.NoError(t, err)
	require.NoError(t, team.cmd.Process.Kill())
	_, _, err = run(t, team, api.Call{Collective: api.AllReduce, DType: api.BF16, Op: api.Sum, Ranks: 2, Count: 4})
	var fault *api.Fault
	require.ErrorAs(t, err, &fault)
	require.Equal(t, api.FaultAborted, fault.Kind)
	require.NoError(t, team.Close(context.Background()))
}

// TestCancel: a rank that waits alone is let go, and the team lives on.
func TestCancel(t *testing.T) {
	team, err := open(t, "serve", "sim:tandem", 2)
	require.NoError(t, err)
	call := api.Call{Collective: api.AllReduce, DType: api.BF16, Op: api.Sum, Ranks: 2, Count: 4}
	p, err := team.Members()[0].Start(call, memory(&call, 0))
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	_, err = p.Wait(ctx)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.NoError(t, team.Close(context.Background()))
}

// TestServeRefusesNonsense: what no parent sends is an error, not a panic.
func TestServeRefusesNonsense(t *testing.T) {
	s := &Service{ctx: context.Background(), waits: map[int]*wait{}, open: backend().Open}
	var f Failure
	require.NoError(t, s.Start(StartArgs{}, &f))
	require.ErrorContains(t, f.err(), "no team")
	f = Failure{}
	require.NoError(t, s.Open(OpenArgs{"sim:tandem", api.TeamConfig{Ranks: 2}}, &f))
	require.NoError(t, f.err())
	call := api.Call{DType: api.U8, Op: api.Sum, Ranks: 2, Count: 4}
	for _, args := range []StartArgs{
		{Call: call, Collective: "all_confuse"},
		{Call: api.Call{}, Collective: "all_reduce"},
		{Rank: 5, Call: call, Collective: "all_reduce"},
		{Call: call, Collective: "all_reduce", Lanes: []Lane{{Inside: SrcInDst, Src: api.Image{Addr: 1 << 40}, Dst: api.Image{Addr: 1 << 20, Bytes: make([]byte, 8)}}}},
		{Call: call, Collective: "all_reduce", Lanes: []Lane{{Inside: DstInSrc, Dst: api.Image{Addr: 1 << 20, Guard: -1 << 40}, Src: api.Image{Addr: 1 << 20, Bytes: make([]byte, 8)}}}},
		{Call: call, Collective: "all_reduce", Lanes: make([]Lane, 3)},
	} {
		f = Failure{}
		require.NoError(t, s.Start(args, &f))
		require.Error(t, f.err(), "%+v", args)
	}
	var w WaitReply
	require.NoError(t, s.Wait(1, &w))
	require.ErrorContains(t, w.Failure.err(), "started no call")
	require.NoError(t, s.Cancel(1, nil))
	require.NoError(t, Serve(context.Background(), strings.NewReader("no gob"), io.Discard, backend().Open))
}
