package kernelfile

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"example.com/tandem/api"
	"example.com/tandem/api/gpu"
)

// Source is where the value of a parameter comes from.
type Source uint8

// The sources.
const (
	Own       Source = iota // the address of the rank's Area
	All                     // the addresses of all ranks' Area
	Multicast               // the multicast address of Area
	Word                    // Name of the call: count, bytes, rank, ranks, root
	Integer                 // Bits, sign-extended to 64
	Single                  // Bits of a float
	Double                  // Bits of a double
)

// Param is one parameter of a kernel.
type Param struct {
	Source Source
	Area   string // src, dst, or a name of scratch
	Name   string // of a Word
	Bits   uint64
	Line   int // in the description
}

// words are the names with a meaning of their own.
var words = []string{"src", "dst", "count", "bytes", "rank", "ranks", "root", "all", "multicast"}

// params reads the list of parameters.
func (r *reader) params() {
	if r.token() != json.Delim('[') {
		r.fail("params are no list")
	}
	for r.dec.More() {
		if len(r.d.Params) == gpu.MaxArgs {
			r.fail("more than %d parameters", gpu.MaxArgs)
		}
		var raw json.RawMessage
		r.value("a parameter", &raw)
		p := r.param(raw)
		p.Line = r.line()
		r.d.Params = append(r.d.Params, p)
	}
	r.token()
}

func (r *reader) param(raw json.RawMessage) Param {
	var name string
	if json.Unmarshal(raw, &name) == nil && string(raw) != "null" {
		return r.namedParam(name)
	}
	if v, err := strconv.ParseInt(string(raw), 10, 64); err == nil {
		return Param{Source: Integer, Bits: uint64(v)}
	}
	if v, err := strconv.ParseUint(string(raw), 10, 64); err == nil {
		return Param{Source: Integer, Bits: v}
	}
	var f map[string]float64
	if json.Unmarshal(raw, &f) == nil && len(f) == 1 {
		for kind, v := range f {
			switch {
			case kind == "f32" && (math.Abs(v) <= math.MaxFloat32):
				return Param{Source: Single, Bits: uint64(math.Float32bits(float32(v)))}
			case kind == "f64":
				return Param{Source: Double, Bits: math.Float64bits(v)}
			}
		}
	}
	r.fail("%s is no parameter: give a name, an integer, {\"f32\": x} or {\"f64\": x}", quoted(string(raw)))
	return Param{}
}

func (r *reader) namedParam(name string) Param {
	group, area, dotted := strings.Cut(name, ".")
	switch {
	case dotted && area != "" && group == "all":
		return Param{Source: All, Area: area}
	case dotted && area != "" && group == "multicast":
		return Param{Source: Multicast, Area: area}
	case dotted || name == "" || name == "all" || name == "multicast":
		r.fail("%s is no parameter; before a dot there is all or multicast", quoted(name))
	case slices.Contains(words[2:], name):
		return Param{Source: Word, Name: name}
	}
	return Param{Source: Own, Area: name}
}

// fits says why a parameter cannot fill that many bytes of the kernel's; "" if
// it can.
func (p *Param) fits(size, ranks int) string {
	switch p.Source {
	case Own, Multicast:
		if size != 8 {
			return fmt.Sprintf("an address has 8 bytes, the kernel takes %d", size)
		}
	case All:
		if size != 8 && size < 8*ranks {
			return fmt.Sprintf("the kernel takes %d bytes: neither an address nor %d of them, one a rank", size, ranks)
		}
	case Single, Double:
		if want := map[Source]int{Single: 4, Double: 8}[p.Source]; size != want {
			return fmt.Sprintf("the number has %d bytes, the kernel takes %d", want, size)
		}
	default:
		if size != 1 && size != 2 && size != 4 && size != 8 {
			return fmt.Sprintf("an integer has 1, 2, 4 or 8 bytes, the kernel takes %d", size)
		}
	}
	return ""
}

// value is the word of a call.
func (p *Param) value(call *api.Call, rank int) uint64 {
	switch p.Name {
	case "count":
		return uint64(call.Count)
	case "bytes":
		return uint64(call.Count) * uint64(call.DType.Size())
	case "rank":
		return uint64(rank)
	case "ranks":
		return uint64(call.Ranks)
	case "root":
		return uint64(call.Root)
	}
	return p.Bits
}

// addresses are where the buffers of a call lie: by rank, and for all.
type addresses struct {
	own   []map[string]gpu.Ptr
	multi []map[string]gpu.Ptr
	table []map[string]gpu.Ptr // of the ranks' addresses of an area, on each rank
}

// pack makes the arguments of a rank, in the places that the kernel has them.
func (d *Description) pack(call *api.Call, rank int, at *addresses, places []gpu.Param) (*gpu.Args, error) {
	a := new(gpu.Args)
	end := 0
	for i := range d.Params {
		p, place := &d.Params[i], places[i]
		b := make([]byte, max(place.Size, 8))
		switch p.Source {
		case Own:
			binary.LittleEndian.PutUint64(b, uint64(at.own[rank][p.Area]))
		case Multicast:
			binary.LittleEndian.PutUint64(b, uint64(at.multi[rank][p.Area]))
		case All:
			if place.Size == 8 {
				binary.LittleEndian.PutUint64(b, uint64(at.table[rank][p.Area]))
				break
			}
			for r := range at.own {
				binary.LittleEndian.PutUint64(b[8*r:], uint64(at.own[r][p.Area]))
			}
		default:
			v := p.value(call, rank)
			if n := 8 * place.Size; n < 64 && v>>n != 0 && int64(v)>>(n-1) != -1 {
				return nil, &Error{d.File, p.Line, fmt.Sprintf("%d does not fit the %d bytes of parameter %d", int64(v), place.Size, i)}
			}
			binary.LittleEndian.PutUint64(b, v)
		}
		a.Struct(b[:place.Size], alignment(end, place.Offset))
		end = place.Offset + place.Size
	}
	return a, nil
}

// alignment is one that takes a buffer from its end to an offset.
func alignment(end, offset int) int {
	align := 1
	for align < 16 && (end+align-1)/align*align != offset {
		align *= 2
	}
	return align
}
