package dumps

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"example.com/tandem/api"
)

// Dir is a directory of dumps. It holds no open files.
type Dir struct {
	path  string
	files []file // by rank
}

// file is the payload of one rank.
type file struct {
	path  string
	start int64 // bytes before the payload
	size  int64 // bytes of payload
	npy   *Header
}

var lastNumber = regexp.MustCompile(`^.*?(\d+)[^\d]*$`)

// Open looks at every file of a directory. Names that begin with a dot are
// passed over; every other entry must be the dump of one rank, and the ranks
// must be 0, 1, .. without a gap.
func Open(path string) (*Dir, error) {
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil, &api.InvalidError{Field: "file", Value: path, Reason: reason(err), Hint: "name a directory with one file a rank"}
	}
	found := map[int]file{}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), ".") {
			continue
		}
		rank, f, err := openFile(path, e)
		if err != nil {
			return nil, err
		}
		if other, ok := found[rank]; ok {
			return nil, invalid(f.path, fmt.Sprintf("%s is rank %d too", filepath.Base(other.path), rank), "keep one file a rank")
		}
		found[rank] = f
	}
	d := &Dir{path: path}
	for r := range len(found) {
		f, ok := found[r]
		if !ok {
			return nil, invalid(path, fmt.Sprintf("it has %d files, and none of them is rank %d", len(found), r), "number the files from 0, as rank0.bin, rank1.bin")
		}
		d.files = append(d.files, f)
	}
	if len(d.files) == 0 {
		return nil, invalid(path, "it holds no dumps", "one file a rank, as rank0.bin or rank0.npy")
	}
	return d, nil
}

func openFile(dir string, e os.DirEntry) (rank int, f file, err error) {
	f.path = filepath.Join(dir, e.Name())
	info, err := os.Stat(f.path)
	if err != nil {
		return 0, f, invalid(f.path, reason(err), "")
	}
	if !info.Mode().IsRegular() {
		return 0, f, invalid(f.path, "not a regular file", "a directory of dumps holds one file a rank and nothing else")
	}
	base := strings.TrimSuffix(e.Name(), filepath.Ext(e.Name()))
	m := lastNumber.FindStringSubmatch(base)
	if m == nil {
		return 0, f, invalid(f.path, "its name has no rank", "name the files rank0.bin, rank1.bin, ..")
	}
	rank, err = strconv.Atoi(m[1])
	if err != nil || rank >= api.MaxRanks {
		return 0, f, invalid(f.path, "rank out of range", fmt.Sprintf("0 to %d", api.MaxRanks-1))
	}
	f.size = info.Size()
	if strings.EqualFold(filepath.Ext(e.Name()), ".npy") {
		err = f.readHeader()
	}
	return rank, f, err
}

func (f *file) readHeader() error {
	r, err := os.Open(f.path)
	if err != nil {
		return invalid(f.path, reason(err), "")
	}
	defer r.Close()
	h, err := ParseHeader(r)
	if err != nil {
		return invalid(f.path, err.Error(), "write it with numpy.save, C order, little-endian")
	}
	if want := h.Offset + h.Bytes(); want != f.size {
		return invalid(f.path, fmt.Sprintf("it has %d bytes, its header says %d", f.size, want), "")
	}
	f.npy, f.start, f.size = &h, h.Offset, h.Bytes()
	return nil
}

// Ranks is the number of files.
func (d *Dir) Ranks() int { return len(d.files) }

// Check says whether the directory holds what the call needs: a file a rank,
// with elems(lane) elements of each lane. .npy files must have a type that fits
// the call's.
func (d *Dir) Check(call *api.Call, elems func(lane int) int64) error {
	if len(d.files) != call.Ranks {
		return invalid(d.path, fmt.Sprintf("it holds %s, the call has %d", ranksText(len(d.files)), call.Ranks), "one file a rank")
	}
	var need int64
	for i := range call.Lanes() {
		need += elems(i) * int64(call.Lane(i).DType.Size())
	}
	for _, f := range d.files {
		if f.size != need {
			return invalid(f.path, fmt.Sprintf("it holds %d bytes, the call needs %d", f.size, need), "raw little-endian elements, or .npy")
		}
		if f.npy == nil {
			continue
		}
		for i := range call.Lanes() {
			if t := call.Lane(i).DType; !f.npy.Fits(t) {
				return invalid(f.path, fmt.Sprintf("its type is %s, the call's is %s", f.npy.Descr, t), "bf16 and fp8 are kept as unsigned integers or void of their size")
			}
		}
	}
	return nil
}

// ReadAt fills p from the payload of a rank, from byte off on.
func (d *Dir) ReadAt(rank int, p []byte, off int64) error {
	f := d.files[rank]
	r, err := os.Open(f.path)
	if err != nil {
		return invalid(f.path, reason(err), "")
	}
	defer r.Close()
	n, err := r.ReadAt(p, f.start+off)
	if err != nil && !(errors.Is(err, io.EOF) && n == len(p)) {
		return invalid(f.path, reason(err), "it was changed while it was read")
	}
	return nil
}

func invalid(path, why, hint string) error {
	return &api.InvalidError{Field: "file", Value: path, Reason: why, Hint: hint}
}

// reason is an error without the path, which is named anyway.
func reason(err error) string {
	var p *os.PathError
	if errors.As(err, &p) {
		return p.Err.Error()
	}
	return err.Error()
}

func ranksText(n int) string {
	if n == 1 {
		return "1 rank"
	}
	return fmt.Sprintf("%d ranks", n)
}
