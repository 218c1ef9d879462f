package vectors

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"example.com/tandem/api"
)

// Writer writes a file of version 2.
type Writer struct {
	out   *bufio.Writer
	close []func() error
}

// Create makes a file, compressed if its name ends in .gz. Close it.
func Create(path string, h Header) (*Writer, error) {
	f, err := os.Create(path)
	if err != nil {
		var p *os.PathError
		errors.As(err, &p)
		return nil, &api.InvalidError{Field: "file", Value: path, Reason: p.Err.Error()}
	}
	var dst io.Writer = f
	closers := []func() error{f.Close}
	if strings.HasSuffix(path, ".gz") {
		z := gzip.NewWriter(f)
		dst = z
		closers = []func() error{z.Close, f.Close}
	}
	w, err := NewWriter(dst, h)
	if err != nil {
		f.Close()
		return nil, err
	}
	w.close = closers
	return w, nil
}

// NewWriter writes the header; its Format and Version are set here.
func NewWriter(out io.Writer, h Header) (*Writer, error) {
	h.Format, h.Version = formatName, Version
	if h.Environment == nil {
		h.Environment = map[string]string{}
	}
	w := &Writer{out: bufio.NewWriterSize(out, 1<<16)}
	line, err := json.Marshal(&h)
	if err != nil {
		return nil, fmt.Errorf("header: %w", err)
	}
	return w, w.line(line)
}

// Write writes one row. A row that a Reader would not take is refused.
func (w *Writer) Write(r *Row) error {
	if err := r.check(); err != nil {
		return err
	}
	line, err := encodeRow(r)
	if err != nil {
		return fmt.Errorf("row: %w", err)
	}
	if len(line) > MaxLine {
		return &api.InvalidError{Field: "out_hex", Value: fmt.Sprintf("%d bytes", len(line)), Reason: "the line is too long", Hint: fmt.Sprintf("lines have at most %d bytes: leave outputs out", MaxLine)}
	}
	return w.line(line)
}

func (w *Writer) line(line []byte) error {
	_, err := w.out.Write(append(line, '\n'))
	return err
}

// Close writes what is buffered and closes a file that Create made.
func (w *Writer) Close() error {
	err := w.out.Flush()
	for _, c := range w.close {
		err = errors.Join(err, c())
	}
	return err
}
