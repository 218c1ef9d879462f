//go:build unix

package cuda

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"example.com/tandem/api/gpu"
)

// lockPause is the time between two tries for a lock.
const lockPause = 20 * time.Millisecond

// lockGPU takes the file lock of a GPU: an flock, so that it ends with the
// process however that ends. The file is left behind; removing it would let two
// processes lock two files of one name.
func lockGPU(ctx context.Context, dir string, id gpu.UUID) (*os.File, error) {
	path := filepath.Join(dir, "tandem-"+id.String()+".lock")
	f, err := openLock(path)
	if err != nil {
		return nil, gpu.Refuse("lock", gpu.ErrDriver, "%v", err)
	}
	for {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			// Only for the message below; a read-only file goes without.
			if f.Truncate(0) == nil {
				_, _ = fmt.Fprintf(f, "process %d (%s)", os.Getpid(), filepath.Base(os.Args[0]))
			}
			return f, nil
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, syscall.EINTR) {
			_ = f.Close()
			return nil, gpu.Refuse("lock", gpu.ErrDriver, "%s: %v", path, err)
		}
		select {
		case <-ctx.Done():
			_ = f.Close()
			return nil, gpu.Refuse("lock", gpu.ErrDeadline, "%v is held by %s: %v", id, holder(path), context.Cause(ctx))
		case <-time.After(lockPause):
		}
	}
}

// openLock opens the file as it is before it tries to create it: a sticky
// directory may forbid the creating form on another user's file.
func openLock(path string) (*os.File, error) {
	for _, try := range []func() (*os.File, error){
		func() (*os.File, error) { return os.OpenFile(path, os.O_RDWR, 0) },
		func() (*os.File, error) { return os.Open(path) },
	} {
		if f, err := try(); err == nil {
			return f, nil
		}
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o666)
	if err == nil {
		_ = f.Chmod(0o666) // against the umask; other users must get at it
	}
	return f, err
}

func holder(path string) string {
	b, err := os.ReadFile(path)
	if text := strings.TrimSpace(string(b)); err == nil && text != "" {
		return text
	}
	return "another process"
}
