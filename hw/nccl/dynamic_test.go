//go:build gpu && linux && cgo

package nccl

import (
	_ "embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/tandem/api"
)

// The source is embedded: a test binary that is carried elsewhere has no
// testdata.
//
//go:embed testdata/fakenccl.c
var fakeSource []byte

// compile builds the fake library with some defines.
func compile(t *testing.T, name string, defines ...string) string {
	cc, err := exec.LookPath("cc")
	if err != nil {
		t.Skipf("no C compiler to build the fake library with: %v", err)
	}
	dir := t.TempDir()
	src, out := filepath.Join(dir, "fake.c"), filepath.Join(dir, name)
	require.NoError(t, os.WriteFile(src, fakeSource, 0o600))
	defines = append(defines, fmt.Sprintf("-DFAKE_DIR=%q", dir))
	text, err := exec.Command(cc, append(defines, "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-o", out, src)...).CombinedOutput()
	require.NoError(t, err, "%s", text)
	return out
}

// loaded is a fake library, opened.
type loaded struct {
	library
	t          *testing.T
	dir        string
	generation *int
}

// reset empties the log and makes the n-th call from now on fail; 0 is none.
func (f loaded) reset(n, code int) {
	*f.generation++
	require.NoError(f.t, os.WriteFile(filepath.Join(f.dir, "log"), nil, 0o600))
	require.NoError(f.t, os.WriteFile(filepath.Join(f.dir, "control"), fmt.Appendf(nil, "%d %d %d", *f.generation, n, code), 0o600))
}

func (f loaded) log() string {
	b, err := os.ReadFile(filepath.Join(f.dir, "log"))
	require.NoError(f.t, err)
	return string(b)
}

func fake(t *testing.T, defines ...string) loaded {
	file := compile(t, soname, append([]string{"-DFAKE_VERSION=22803"}, defines...)...)
	lib, err := open(file, file)
	require.NoError(t, err)
	f := loaded{lib, t, filepath.Dir(file), new(int)}
	f.reset(0, 0)
	return f
}

// lines joins what the fake should have noted.
func lines(l ...string) string { return strings.Join(l, "\n") + "\n" }

// TestPacking: the tasks that the shim gets become calls with every argument in
// its place, each in its context, in one group.
func TestPacking(t *testing.T) {
	f := fake(t)
	at := func(k kind, rank uintptr) task {
		return task{comm: 0x100 + rank, stream: 0x200 + rank, context: 0x300 + rank, send: 1<<40 + 0x10, recv: 1<<41 + 0x20, count: 1<<33 + 5, kind: k, dtype: 9, op: 4, peer: 1}
	}
	require.NoError(t, f.Group([]task{at(doAllReduce, 0), at(doReduceScatter, 1), at(doAllGather, 0), at(doBroadcast, 1), at(doSend, 0), at(doRecv, 1)}))
	const args = " 10000000010 20000000020 8589934597 type 9"
	require.Equal(t, lines("start",
		"context 300", "all_reduce"+args+" op 4 comm 100 stream 200",
		"context 301", "reduce_scatter"+args+" op 4 comm 101 stream 201",
		"context 300", "all_gather"+args+" comm 100 stream 200",
		"context 301", "broadcast"+args+" root 1 comm 101 stream 201",
		"context 300", "send 10000000010 8589934597 type 9 peer 1 comm 100 stream 200",
		"context 301", "recv 20000000020 8589934597 type 9 peer 1 comm 101 stream 201",
		"end 0"), f.log())
	require.Error(t, f.Group([]task{{kind: 99}}), "an unknown kind is no call")
}

// TestShimFailures: every call of a group fails in turn; the group is ended and
// the call that failed is named.
func TestShimFailures(t *testing.T) {
	f := fake(t)
	list := []task{{kind: doAllReduce}, {kind: doBroadcast}}
	for n, call := range []string{"ncclGroupStart", "cuCtxSetCurrent", "ncclAllReduce", "cuCtxSetCurrent", "ncclBroadcast", "ncclGroupEnd"} {
		f.reset(n+1, 2)
		err := f.Group(list)
		var e *Error
		require.ErrorAs(t, err, &e, call)
		require.Equal(t, call, e.Call)
		require.Equal(t, "the last warning", e.Last)
		if call != "cuCtxSetCurrent" {
			require.Equal(t, 2, e.Code)
			require.Equal(t, "unhandled system error", e.Text)
		}
		require.Equal(t, n > 0, strings.HasSuffix(f.log(), "end 0\n"), "%s: %s", call, f.log())
	}
	f.reset(1, 7)
	_, err := f.InitAll([]int32{0})
	require.ErrorContains(t, err, "ncclCommInitAll: some error (7)")
}

func TestCommunicators(t *testing.T) {
	f := fake(t)
	comms, err := f.InitAll([]int32{0, 1})
	require.NoError(t, err)
	require.Equal(t, []uintptr{0x100, 0x101}, comms)
	require.NoError(t, f.AsyncError(0x100))
	require.ErrorContains(t, f.AsyncError(0x101), "(6)")
	require.NoError(t, f.Destroy(0x100))
	require.NoError(t, f.Abort(0x101))
	require.Equal(t, lines("init 2", "destroy 100", "abort 101"), f.log())
	v, err := f.Version()
	require.NoError(t, err)
	require.Equal(t, 22803, v)
}

func TestMemoryCalls(t *testing.T) {
	f := fake(t)
	p, err := f.Alloc(0x300, 4096)
	require.NoError(t, err)
	require.Equal(t, uint64(0x7000), p)
	require.NoError(t, f.Free(0x301, p))
	ranks := []task{{comm: 0x100, context: 0x300}, {comm: 0x101, context: 0x301}}
	for _, windows := range []bool{false, true} {
		h, err := f.Register(windows, ranks, []uint64{0x7000, 0x8000}, 1<<33)
		require.NoError(t, err)
		require.Equal(t, map[bool][]uintptr{false: {0xa00, 0xa01}, true: {0xb00, 0xb01}}[windows], h)
		require.NoError(t, f.Deregister(windows, ranks, h))
	}
	require.Equal(t, lines("context 300", "alloc 4096", "context 301", "free 7000",
		"start", "context 300", "register 100 7000 8589934592", "context 301", "register 101 8000 8589934592", "end 0",
		"context 300", "deregister 100 a00", "context 301", "deregister 101 a01",
		"start", "context 300", "window 100 7000 8589934592 flags 1", "context 301", "window 101 8000 8589934592 flags 1", "end 0",
		"context 300", "no window 100 b00", "context 301", "no window 101 b01"), f.log())
	old := fake(t, "-DFAKE_OLD")
	_, err = old.Register(true, ranks, []uint64{1, 2}, 3)
	require.ErrorContains(t, err, "ncclCommWindowRegister")
	_, err = old.Register(false, ranks, []uint64{1, 2}, 3)
	require.NoError(t, err)
}

// TestDynamicLoading: no library, another library, one that is too old, and the
// directory in the environment.
func TestDynamicLoading(t *testing.T) {
	try := func(o Options) string {
		if o.Env == nil {
			o.Env = &fakeEnv{vars: map[string]string{}}
		}
		return New(o).Describe().Unavailable
	}
	good := compile(t, soname, "-DFAKE_VERSION=22809")
	require.Contains(t, try(Options{Library: "/no/such/lib.so"}), "cannot open shared object file")
	require.Contains(t, try(Options{Library: good, Driver: "/no/such/driver.so"}), "driver.so: cannot open shared object file")
	require.Contains(t, try(Options{Library: compile(t, "other.so", "-DFAKE_VERSION=1", "-DncclSend=unrelated"), Driver: good}), "undefined symbol: ncclSend")
	require.Contains(t, try(Options{Library: compile(t, "old.so", "-DFAKE_VERSION=21602"), Driver: good}), "2.16.2")
	l := New(Options{Driver: good, Env: &fakeEnv{vars: map[string]string{DirEnv: filepath.Dir(good)}}})
	require.Empty(t, l.Describe().Unavailable)
	v, err := l.Version()
	require.NoError(t, err)
	require.Equal(t, "2.28.9", Version(v))
	_, err = New(Options{Library: "/no/such/lib.so"}).Version()
	require.ErrorIs(t, err, api.ErrUnavailable)
}
