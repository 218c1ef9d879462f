package dumps

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/bits"
	"strconv"
	"strings"

	"example.com/tandem/api"
)

// Header is what the header of a .npy file says.
type Header struct {
	Descr  string // as "<f4", "|u1", "<V2"
	Kind   byte   // i, u, f or V
	Size   int    // bytes of an element
	Shape  []int64
	Offset int64 // bytes before the data
}

const (
	npyMagic  = "\x93NUMPY"
	maxHeader = 1 << 16 // bytes; what NumPy writes has 128
	maxDims   = 64      // NumPy's own limit
)

// ParseHeader reads the header of a .npy file, format 1.0, 2.0 or 3.0: a
// dictionary with exactly descr, fortran_order and shape. Big-endian data,
// Fortran order of more than one dimension, and record and object types are
// refused.
func ParseHeader(r io.Reader) (Header, error) {
	var h Header
	var start [12]byte
	if _, err := io.ReadFull(r, start[:8]); err != nil || string(start[:6]) != npyMagic {
		return h, errors.New("not a .npy file")
	}
	lenBytes := 2
	switch [2]byte(start[6:8]) {
	case [2]byte{1, 0}:
	case [2]byte{2, 0}, [2]byte{3, 0}:
		lenBytes = 4
	default:
		return h, fmt.Errorf(".npy format %d.%d is unknown", start[6], start[7])
	}
	if _, err := io.ReadFull(r, start[8:8+lenBytes]); err != nil {
		return h, errors.New("truncated .npy header")
	}
	n := binary.LittleEndian.Uint32(start[8:])
	if n > maxHeader {
		return h, fmt.Errorf(".npy header of %d bytes", n)
	}
	text := make([]byte, n)
	if _, err := io.ReadFull(r, text); err != nil {
		return h, errors.New("truncated .npy header")
	}
	h.Offset = int64(8 + lenBytes + len(text))
	return h, h.parse(string(text))
}

// Elements is the product of the shape. ParseHeader has checked it.
func (h *Header) Elements() int64 {
	n := int64(1)
	for _, d := range h.Shape {
		n *= d
	}
	return n
}

// Bytes is the size of the data.
func (h *Header) Bytes() int64 { return h.Elements() * int64(h.Size) }

// Fits reports whether the file may hold elements of d: NumPy has no bf16 and
// no fp8, so unsigned integers and raw bytes of the same size stand for any
// type.
func (h *Header) Fits(d api.DType) bool {
	if h.Size != d.Size() {
		return false
	}
	switch h.Kind {
	case 'f':
		return d == api.F16 || d == api.F32 || d == api.F64
	case 'i':
		return !d.Float() && d.Signed()
	}
	return true
}

// parse reads the dictionary.
func (h *Header) parse(text string) error {
	p := literal{rest: text}
	if !p.take("{") {
		return errors.New(".npy header is no dictionary")
	}
	seen := map[string]bool{}
	var fortran bool
	for !p.take("}") {
		key, ok := p.str()
		if !ok || !p.take(":") || seen[key] {
			return errors.New("malformed .npy header")
		}
		seen[key] = true
		switch key {
		case "descr":
			h.Descr, ok = p.str()
		case "fortran_order":
			fortran, ok = p.boolean()
		case "shape":
			h.Shape, ok = p.tuple()
		default:
			return fmt.Errorf("unknown key %.40q in .npy header", key)
		}
		if !ok {
			return fmt.Errorf("malformed %s in .npy header", key)
		}
		if !p.take(",") && !p.peek('}') {
			return errors.New("malformed .npy header")
		}
	}
	if strings.TrimSpace(p.rest) != "" || len(seen) != 3 {
		return errors.New("malformed .npy header")
	}
	if fortran && len(h.Shape) > 1 {
		return errors.New("the array is in Fortran order")
	}
	if err := h.parseDescr(); err != nil {
		return err
	}
	return h.checkShape()
}

func (h *Header) parseDescr() error {
	bad := fmt.Errorf("element type %.20q is not supported", h.Descr)
	if len(h.Descr) != 3 {
		return bad
	}
	order, size := h.Descr[0], int(h.Descr[2]-'0')
	h.Kind, h.Size = h.Descr[1], size
	if order == '>' && size > 1 {
		return fmt.Errorf("element type %q is big-endian", h.Descr)
	}
	known := strings.IndexByte("iufV", h.Kind) >= 0 && (size == 1 || size == 2 || size == 4 || size == 8)
	if !known || h.Kind == 'f' && size == 1 || order != '<' && order != '|' {
		return bad
	}
	if order == '|' && size > 1 && h.Kind != 'V' {
		return bad
	}
	return nil
}

// checkShape keeps Elements and Bytes from overflowing.
func (h *Header) checkShape() error {
	n := uint64(h.Size)
	for _, d := range h.Shape {
		hi, lo := bits.Mul64(n, uint64(d))
		if n = lo; hi != 0 || lo > 1<<56 {
			return fmt.Errorf("shape %v is too large", h.Shape)
		}
	}
	return nil
}

// literal reads the few Python literals that a header has.
type literal struct{ rest string }

func (p *literal) skip() { p.rest = strings.TrimLeft(p.rest, " \t\n\r") }

func (p *literal) take(token string) bool {
	p.skip()
	rest, ok := strings.CutPrefix(p.rest, token)
	if ok {
		p.rest = rest
	}
	return ok
}

func (p *literal) peek(c byte) bool {
	p.skip()
	return len(p.rest) > 0 && p.rest[0] == c
}

// str reads a quoted string without escapes.
func (p *literal) str() (string, bool) {
	p.skip()
	if len(p.rest) < 2 || p.rest[0] != '\'' && p.rest[0] != '"' {
		return "", false
	}
	s, rest, ok := strings.Cut(p.rest[1:], p.rest[:1])
	if !ok || strings.ContainsAny(s, "\\\n") {
		return "", false
	}
	p.rest = rest
	return s, true
}

func (p *literal) boolean() (value, ok bool) {
	if p.take("True") {
		return true, true
	}
	return false, p.take("False")
}

// tuple reads (), (3,) or (3, 4).
func (p *literal) tuple() ([]int64, bool) {
	if !p.take("(") {
		return nil, false
	}
	dims := []int64{}
	for !p.take(")") {
		p.skip()
		end := 0
		for end < len(p.rest) && p.rest[end] >= '0' && p.rest[end] <= '9' {
			end++
		}
		n, err := strconv.ParseInt(p.rest[:end], 10, 64)
		if err != nil || len(dims) == maxDims {
			return nil, false
		}
		p.rest = p.rest[end:]
		dims = append(dims, n)
		if !p.take(",") && (!p.peek(')') || len(dims) == 1) {
			return nil, false
		}
	}
	return dims, true
}
