//go:build unix

package vectors

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/tandem/api"
)

// TestPipes: a pipe is read as a file is, whoever comes first, and the end of the
// context ends waiting for a writer and for what it writes.
func TestPipes(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	require.NoError(t, syscall.Mkfifo(pipe, 0o600))
	const header = `{"format":"vectors","version":1,"profile":"x"}` + "\n"
	var text strings.Builder
	_, err := NewReader(strings.NewReader(header))
	require.NoError(t, err)
	text.WriteString(header)

	write := func(hold <-chan struct{}, parts ...string) {
		f, err := os.OpenFile(pipe, os.O_WRONLY, 0)
		if err != nil {
			return
		}
		for _, p := range parts {
			_, _ = f.WriteString(p)
		}
		if hold != nil {
			<-hold
		}
		f.Close()
	}
	go write(nil, text.String()[:10], text.String()[10:])
	r, err := OpenContext(context.Background(), pipe)
	require.NoError(t, err)
	_, err = r.Next()
	require.ErrorIs(t, err, io.EOF)
	require.NoError(t, r.Close())

	// A writer that is silent after the header.
	ctx, cancel := context.WithCancel(context.Background())
	hold := make(chan struct{})
	go write(hold, header)
	r, err = OpenContext(ctx, pipe)
	require.NoError(t, err)
	time.AfterFunc(20*time.Millisecond, cancel)
	_, err = r.Next()
	require.ErrorIs(t, err, context.Canceled)
	require.NoError(t, r.Close())
	close(hold)

	// Nobody writes.
	other := filepath.Join(t.TempDir(), "other")
	require.NoError(t, syscall.Mkfifo(other, 0o600))
	ctx, cancel = context.WithCancel(context.Background())
	time.AfterFunc(20*time.Millisecond, cancel)
	_, err = OpenContext(ctx, other)
	require.ErrorIs(t, err, context.Canceled)
	_, err = OpenContext(ctx, other)
	require.ErrorIs(t, err, context.Canceled)
	// The goroutine that still waits is let go.
	f, err := os.OpenFile(other, os.O_RDWR, 0)
	require.NoError(t, err)
	require.NoError(t, f.Close())

	for _, bad := range []string{filepath.Join(t.TempDir(), "none"), t.TempDir()} {
		_, err = Open(bad)
		require.ErrorIs(t, err, api.ErrInvalid)
	}
	require.NoError(t, os.Chmod(other, 0))
	if os.Geteuid() != 0 {
		_, err = Open(other)
		require.ErrorIs(t, err, api.ErrInvalid)
	}
}
