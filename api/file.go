package api

import (
	"errors"
	"os"
)

// errNoFile says that a name is that of a folder, a pipe or a device.
var errNoFile = errors.New("it is no regular file")

// OpenFile opens a regular file for reading. Anything else is an error at once:
// opening a pipe would wait for a writer, which nothing can end.
func OpenFile(path string) (*os.File, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, &os.PathError{Op: "open", Path: path, Err: errNoFile}
	}
	return os.Open(path)
}
