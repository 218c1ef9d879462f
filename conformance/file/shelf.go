package file

import (
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"sync"
	"time"

	"example.com/tandem/api"
	"example.com/tandem/conformance/inputs"
	"example.com/tandem/conformance/vectors"
)

// shelf keeps the files that were read.
type shelf struct {
	mu    sync.Mutex
	books map[string]*book
}

// book is a vector file in memory.
type book struct {
	header   vectors.Header
	rows     map[string][]*vectors.Row
	size     int64
	modified time.Time
}

// maxHeld bounds the outputs that a book holds, in bytes.
const maxHeld = 2 << 30

// open reads a file, or gives what was read if it has not changed since.
func (s *shelf) open(path string, info os.FileInfo) (*book, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if b := s.books[path]; b != nil && b.size == info.Size() && b.modified.Equal(info.ModTime()) {
		return b, nil
	}
	b, err := read(path)
	if err != nil {
		return nil, err
	}
	b.size, b.modified = info.Size(), info.ModTime()
	if s.books == nil {
		s.books = map[string]*book{}
	}
	s.books[path] = b
	return b, nil
}

// read reads a whole file. As an answer to calls a file with a bad line is
// refused: what the line said is not known.
func read(path string) (*book, error) {
	r, err := vectors.Open(path)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	b := &book{header: r.Header, rows: map[string][]*vectors.Row{}}
	var held int64
	for {
		row, err := r.Next()
		if errors.Is(err, io.EOF) {
			return b, nil
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		for _, p := range row.Output {
			held += int64(len(p))
		}
		if held > maxHeld {
			return nil, &api.InvalidError{Field: "file", Value: path, Reason: fmt.Sprintf("it holds more than %d bytes of outputs", int64(maxHeld)), Hint: "replay reads files of any size"}
		}
		k := key(&row.Call)
		b.rows[k] = append(b.rows[k], row)
	}
}

func sameInput(a, b inputs.Input) bool { return reflect.DeepEqual(a, b) }
