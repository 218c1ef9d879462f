//go:build gpu && linux && cgo

package cuda

import (
	_ "embed"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"example.com/tandem/api/gpu"
	"example.com/tandem/api/gpu/gputest"
)

// The source is embedded: a test binary that is carried elsewhere has no
// testdata.
//
//go:embed testdata/fakecuda.c
var fakeSource []byte

// page is the memory shared with the fake driver; its struct page has the same
// fields.
type page struct {
	devices, version, initCode, busy              uint32
	calls, failAt, failTimes, failCode            uint32
	violations, multicastCalls, blocked, unloaded uint32
	live                                          [12]uint32
	launches, cooperative, overlaps               uint32
	grid, block                                   [3]uint32
	shared, params                                uint32
	param                                         [1024]byte
	failed                                        [64]byte
	complaint                                     [128]byte
	waiting, access                               uint32
}

// fake is a loaded fake driver: a copy of its own, with globals of its own.
type fake struct {
	*page
	path string
}

var compiled struct {
	sync.Mutex
	dir   string
	files map[string]string // by compiler flag
}

// compile builds the fake once for each flag.
func compile(t testing.TB, flag string) string {
	compiled.Lock()
	defer compiled.Unlock()
	if f := compiled.files[flag]; f != "" {
		return f
	}
	cc, err := exec.LookPath("cc")
	if err != nil {
		t.Skipf("no C compiler to build the fake driver with: %v", err)
	}
	out := filepath.Join(compiled.dir, "libcuda"+flag+".so")
	src := filepath.Join(compiled.dir, "fakecuda.c")
	require.NoError(t, os.WriteFile(src, fakeSource, 0o600))
	args := []string{"-Wall", "-Wextra", "-Werror", "-O1", "-shared", "-fPIC", "-o", out, src, "-lpthread"}
	if flag != "" {
		args = append([]string{flag}, args...)
	}
	text, err := exec.Command(cc, args...).CombinedOutput()
	require.NoError(t, err, "%s", text)
	compiled.files[flag] = out
	return out
}

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "fakecuda")
	if err != nil {
		panic(err)
	}
	compiled.dir, compiled.files = dir, make(map[string]string)
	code := gputest.Main(m).Run()
	_ = os.RemoveAll(dir)
	os.Exit(code)
}

// newFake makes a fake driver ready: two devices, CUDA 13.0.
func newFake(t testing.TB, flag string) *fake {
	so, err := os.ReadFile(compile(t, flag))
	require.NoError(t, err)
	dir := t.TempDir()
	f := &fake{path: filepath.Join(dir, "libfake.so")}
	require.NoError(t, os.WriteFile(f.path, so, 0o700))
	shared := filepath.Join(dir, "page")
	require.NoError(t, os.WriteFile(shared, make([]byte, unsafe.Sizeof(page{})), 0o600))
	file, err := os.OpenFile(shared, os.O_RDWR, 0)
	require.NoError(t, err)
	defer file.Close()
	// Never unmapped: the library is never closed either, and holds it.
	b, err := syscall.Mmap(int(file.Fd()), 0, int(unsafe.Sizeof(page{})), syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
	require.NoError(t, err)
	f.page = (*page)(unsafe.Pointer(&b[0]))
	f.devices, f.version = 2, 13000
	t.Setenv("FAKECUDA_PAGE", shared) // read when the library is loaded
	return f
}

func (f *fake) options() Options { return Options{Library: f.path} }

// open opens the driver on the fake; nothing may be left or have gone wrong in
// it at the end of the test.
func (f *fake) open(t testing.TB, o Options) gpu.Driver {
	o.Library = f.path
	d, err := Open(o)
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, d.Close())
		f.clean(t)
	})
	return d
}

// clean checks the fake's own books.
func (f *fake) clean(t testing.TB) {
	t.Helper()
	require.Zero(t, f.violations, "the fake driver complains: %s", cString(f.complaint[:]))
	require.Equal(t, [12]uint32{}, f.live, "left in the driver")
}

// fail makes calls fail from the n-th call from now on.
func (f *fake) fail(n, times uint32, code gpu.Code) {
	f.failTimes, f.failCode = times, uint32(code)
	f.failAt = f.calls + n
}

func (f *fake) context(t testing.TB, d gpu.Driver, device int) gpu.Context {
	c, err := d.Devices()[device].Open()
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	return c
}

// end registers a release.
func end(t testing.TB, release func() error) {
	t.Cleanup(func() { require.NoError(t, release()) })
}
