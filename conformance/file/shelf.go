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

// maxHeld bounds the rows that a book holds, in bytes.
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
		if held += heldBytes(row); held > maxHeld {
			return nil, &api.InvalidError{Field: "file", Value: path, Reason: fmt.Sprintf("its rows take more than %d bytes of memory", int64(maxHeld)), Hint: "replay reads files of any size"}
		}
		k := key(&row.Call)
		b.rows[k] = append(b.rows[k], row)
	}
}

// heldBytes is about what a row takes in memory.
func heldBytes(row *vectors.Row) int64 {
	n := int64(1024) + 64*int64(row.Call.Ranks)
	for _, b := range row.Blocks {
		n += 8 * int64(len(b))
	}
	for _, p := range row.Output {
		n += int64(len(p))
	}
	return n
}

func sameInput(a, b inputs.Input) bool { return reflect.DeepEqual(a, b) }
