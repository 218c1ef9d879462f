package vectors

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"

	"example.com/tandem/api"
)

// MaxLine bounds a line, in bytes. The longest that a Writer makes holds the
// outputs of a faithful call of 1 Mi elements: 16 MiB of digits.
const MaxLine = 32 << 20

// What a reader puts up with before it gives up on a file: lines that are no
// rows, and the bytes of those and of blank lines, after decompression.
const (
	MaxBadLines = 1000
	MaxWaste    = 2 * MaxLine
)

// LineError is an error in one line of a file.
type LineError struct {
	Line int // from 1
	Err  error
}

// Error is one line: the number, and what is wrong.
func (e *LineError) Error() string { return fmt.Sprintf("line %d: %v", e.Line, e.Err) }

// Unwrap is what is wrong with the line.
func (e *LineError) Unwrap() error { return e.Err }

// Is makes every LineError an invalid input, whatever is wrong with it.
func (e *LineError) Is(target error) bool { return target == api.ErrInvalid }

// Reader reads a file row by row.
type Reader struct {
	// Header is the first line.
	Header Header
	in     *bufio.Reader
	close  func() error
	line   int
	size   int // of the line read last, in bytes
	bad    int // lines that are no rows
	waste  int // bytes of lines that are no rows
	done   bool
}

// NewReader reads the header. It sees for itself whether the stream is
// compressed.
func NewReader(in io.Reader) (*Reader, error) {
	r := &Reader{in: bufio.NewReaderSize(in, 1<<16), close: func() error { return nil }}
	if magic, err := r.in.Peek(2); err == nil && magic[0] == 0x1f && magic[1] == 0x8b {
		z, err := gzip.NewReader(r.in)
		if err != nil {
			return nil, &LineError{1, fmt.Errorf("compressed data: %w", err)}
		}
		r.in = bufio.NewReaderSize(z, 1<<16)
	}
	line, err := r.next()
	if errors.Is(err, io.EOF) {
		err = &LineError{1, errors.New("the file is empty")}
	}
	if err != nil {
		return nil, err
	}
	if err := strict(line, &r.Header); err != nil {
		return nil, &LineError{r.line, &api.InvalidError{Field: "header", Reason: err.Error(), Hint: `a vector file begins with {"format":"vectors","version":1 or 2,..}`}}
	}
	if err := r.Header.check(); err != nil {
		return nil, &LineError{r.line, err}
	}
	return r, nil
}

// Next is the next row, or io.EOF. After a *LineError reading may go on: a bad
// row is one line; where the stream itself is broken io.EOF follows. Any other
// error, an *api.InvalidError, says that the reader gives up: more than
// MaxBadLines or MaxWaste of the file were no rows.
func (r *Reader) Next() (*Row, error) {
	line, err := r.next()
	if err != nil {
		return nil, err
	}
	row, err := decodeRow(line, r.Header.Version)
	if err != nil {
		r.waste += r.size
		if r.bad++; r.bad > MaxBadLines {
			return nil, r.giveUp(fmt.Sprintf("more than %d lines cannot be read, the last one %d: %.200v", MaxBadLines, r.line, err))
		}
		return nil, &LineError{r.line, err}
	}
	row.Line = r.line
	return row, nil
}

// Close closes a file that [Open] or [OpenContext] opened.
func (r *Reader) Close() error { return r.close() }

// giveUp ends reading.
func (r *Reader) giveUp(why string) error {
	r.done = true
	return &api.InvalidError{Field: "line", Value: fmt.Sprint(r.line), Reason: why, Hint: "a vector file has one row a line, as compare record writes them"}
}

// next is the next line that is not blank, valid until the call after.
func (r *Reader) next() ([]byte, error) {
	for !r.done {
		r.line++
		line, err := r.readLine()
		if err != nil {
			r.done = true
			if !errors.Is(err, io.EOF) {
				return nil, &LineError{r.line, err}
			}
		}
		r.size = len(line)
		if line = bytes.TrimSpace(line); len(line) > 0 && r.waste <= MaxWaste {
			return line, nil
		}
		if r.waste += r.size; r.waste > MaxWaste {
			return nil, r.giveUp(fmt.Sprintf("more than %d MiB of blank or unreadable lines were read", MaxWaste>>20))
		}
	}
	return nil, io.EOF
}

// readLine reads up to the end of the line; what io.EOF comes with is the last
// line.
func (r *Reader) readLine() ([]byte, error) {
	part, err := r.in.ReadSlice('\n')
	if !errors.Is(err, bufio.ErrBufferFull) {
		return part, err
	}
	long := bytes.Clone(part)
	for errors.Is(err, bufio.ErrBufferFull) {
		if len(long) > MaxLine {
			return nil, fmt.Errorf("longer than %d bytes", MaxLine)
		}
		part, err = r.in.ReadSlice('\n')
		long = append(long, part...)
	}
	return long, err
}
