//go:build unix

package api

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestOpenFileDoesNotWait(t *testing.T) {
	dir := t.TempDir()
	pipe, file := filepath.Join(dir, "pipe"), filepath.Join(dir, "file")
	require.NoError(t, syscall.Mkfifo(pipe, 0o600))
	require.NoError(t, os.WriteFile(file, []byte("x"), 0o600))
	for _, name := range []string{pipe, dir, os.DevNull} {
		_, err := OpenFile(name)
		require.ErrorIs(t, err, errNoFile)
	}
	_, err := OpenFile(filepath.Join(dir, "none"))
	require.ErrorIs(t, err, os.ErrNotExist)
	f, err := OpenFile(file)
	require.NoError(t, err)
	require.NoError(t, f.Close())
}
