package vectors

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"example.com/tandem/api"
)

// Open opens a file. Close it. Opening a pipe waits for whoever writes to it; see
// [OpenContext].
func Open(path string) (*Reader, error) { return OpenContext(context.Background(), path) }

// OpenContext opens a file. Close it. Where the path is that of a pipe, opening
// waits for a writer, and reading for what it writes; the end of the context ends
// both, and is then the error.
func OpenContext(ctx context.Context, path string) (*Reader, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil, notOpen(path, err)
	}
	var in io.ReadCloser
	if info.Mode()&(os.ModeNamedPipe|os.ModeCharDevice|os.ModeSocket) != 0 {
		in = pump(ctx, path)
	} else if in, err = os.Open(path); err != nil {
		return nil, notOpen(path, err)
	}
	r, err := NewReader(in)
	if err != nil {
		in.Close()
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	r.close = in.Close
	return r, nil
}

func notOpen(path string, err error) error {
	var p *os.PathError
	errors.As(err, &p)
	return &api.InvalidError{Field: "file", Value: path, Reason: p.Err.Error(), Hint: "name a vector file"}
}

// pump reads what nothing else can stop reading: the goroutine stays in the
// system call until somebody writes or the process ends, and nobody waits for it.
func pump(ctx context.Context, path string) io.ReadCloser {
	out, in := io.Pipe()
	stop := context.AfterFunc(ctx, func() { in.CloseWithError(ctx.Err()) })
	go func() {
		defer stop()
		f, err := os.Open(path)
		if err != nil {
			in.CloseWithError(notOpen(path, err))
			return
		}
		defer f.Close()
		_, err = io.Copy(in, f)
		in.CloseWithError(err) // nil is io.EOF
	}()
	return out
}
