package kernelfile

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"example.com/tandem/api"
	"example.com/tandem/api/gpu"
)

// Bounds of what a description may ask for.
const (
	maxText    = 1 << 20
	maxRanks   = 72
	maxScratch = 1 << 30 // bytes of all areas of a rank
	maxList    = 256
)

// Error is what is wrong with a description, and where. It is an
// api.ErrInvalid.
type Error struct {
	File string
	Line int
	What string
}

// Error is file:line: what.
func (e *Error) Error() string { return fmt.Sprintf("%s:%d: %s", e.File, e.Line, e.What) }

// Unwrap is api.ErrInvalid.
func (e *Error) Unwrap() error { return api.ErrInvalid }

// Area is a scratch buffer that each rank has.
type Area struct {
	Name  string
	Bytes uint64
}

// Description says what a kernel claims to be and how it is launched.
type Description struct {
	File        string // for errors
	Entry       string // "" where the text has one only
	Collective  api.Collective
	DTypes      []api.DType
	Ops         []api.Op
	MinRanks    int
	MaxRanks    int
	Multiple    int64 // counts are multiples of it
	InPlace     []api.InPlace
	Grid, Block gpu.Dim3
	Shared      int // dynamic, bytes
	Cooperative bool
	// AllSources says that a host puts every rank's buffers in place before
	// any kernel starts, and takes none back before all have ended.
	AllSources bool
	Scratch    []Area // sorted by name
	Params     []Param
	paramsLine int
	lines      map[string]int
}

// reader goes over the tokens of a description and knows the line of each.
type reader struct {
	file string
	text []byte
	dec  *json.Decoder
	d    *Description
}

// fail ends the reading; the line is that of the last token.
func (r *reader) fail(format string, args ...any) {
	panic(&Error{r.file, r.line(), fmt.Sprintf(format, args...)})
}

func (r *reader) line() int { return r.lineAt(r.dec.InputOffset()) }

func (r *reader) lineAt(off int64) int {
	return 1 + bytes.Count(r.text[:min(max(off, 0), int64(len(r.text)))], []byte("\n"))
}

// jsonHint follows what is wrong with the text as JSON.
const jsonHint = ` (a description is one JSON object, as {"entry":..,"collective":..,"params":[..]}; go doc ./sim/ptx/kernelfile has a whole one)`

// value decodes the next value.
func (r *reader) value(what string, to any) {
	err := r.dec.Decode(to)
	var syntax *json.SyntaxError
	switch {
	case err == nil:
	case errors.As(err, &syntax):
		panic(&Error{r.file, r.lineAt(syntax.Offset), err.Error() + jsonHint})
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		r.fail("the text ends within %s%s", what, jsonHint)
	default:
		var kind *json.UnmarshalTypeError
		if errors.As(err, &kind) {
			r.fail("%s is a JSON %s, which it cannot be", what, kind.Value)
		}
		r.fail("%s: %v", what, err)
	}
}

func (r *reader) token() json.Token {
	t, err := r.dec.Token()
	var syntax *json.SyntaxError
	switch {
	case err == nil:
		return t
	case errors.As(err, &syntax):
		panic(&Error{r.file, r.lineAt(syntax.Offset), err.Error() + jsonHint})
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		r.fail("the text ends too early%s", jsonHint)
	}
	r.fail("%v", err)
	return nil
}

// object visits the members of an object.
func (r *reader) object(what string, visit func(key string)) {
	if r.token() != json.Delim('{') {
		r.fail("%s is no object", what)
	}
	seen := map[string]bool{}
	for r.dec.More() {
		key, ok := r.token().(string)
		if !ok {
			r.fail("%s has a member without a name", what)
		}
		if seen[key] {
			r.fail("%q is there twice", key)
		}
		seen[key] = true
		visit(key)
	}
	r.token()
}

// Read reads a description; file stands for it in errors, which are *[Error].
func Read(file string, text []byte) (d *Description, err error) {
	if len(text) > maxText {
		return nil, &Error{file, 1, fmt.Sprintf("%d bytes, at most %d are read", len(text), maxText)}
	}
	d = &Description{File: file, MinRanks: 1, MaxRanks: maxRanks, Multiple: 1, InPlace: []api.InPlace{api.OutOfPlace}, Grid: gpu.Dim3{X: 1}, lines: map[string]int{}}
	r := &reader{file: file, text: text, dec: json.NewDecoder(bytes.NewReader(text)), d: d}
	defer func() {
		if p := recover(); p != nil {
			bad, ok := p.(*Error)
			if !ok {
				panic(p)
			}
			d, err = nil, bad
		}
	}()
	r.object("the description", func(key string) {
		d.lines[key] = r.line()
		r.member(key)
	})
	if _, err := r.dec.Token(); !errors.Is(err, io.EOF) {
		r.fail("something follows the description")
	}
	r.complete()
	return d, nil
}

// known are the members, for errors.
const known = "entry, collective, dtypes, ops, ranks, multiple, in_place, grid, block, shared, cooperative, sources, scratch, params"

func (r *reader) member(key string) {
	d := r.d
	switch key {
	case "entry":
		r.value(key, &d.Entry)
	case "collective":
		d.Collective = named(r, key, api.ParseCollective)[0]
	case "dtypes":
		d.DTypes = named(r, key, func(s string) (api.DType, error) { return find(s, api.DTypes()) })
	case "ops":
		d.Ops = named(r, key, func(s string) (api.Op, error) { return find(s, api.Ops()) })
	case "in_place":
		d.InPlace = named(r, key, func(s string) (api.InPlace, error) {
			return find(s, []api.InPlace{api.OutOfPlace, api.InPlaceOwn, api.InPlaceStart})
		})
	case "ranks":
		lo, hi := r.pair(key)
		if lo < 1 || hi > maxRanks || lo > hi {
			r.fail("ranks are %d to %d, they can be 1 to %d", lo, hi, maxRanks)
		}
		d.MinRanks, d.MaxRanks = lo, hi
	case "multiple":
		d.Multiple = int64(r.integer(key, 1, 1<<30))
	case "grid":
		d.Grid = r.dims(key)
	case "block":
		d.Block = r.dims(key)
	case "shared":
		d.Shared = r.integer(key, 0, 1<<20)
	case "cooperative":
		r.value(key, &d.Cooperative)
	case "sources":
		var how string
		r.value(key, &how)
		if how != "own" && how != "all" {
			r.fail("sources are %q, they can be own or all", how)
		}
		d.AllSources = how == "all"
	case "scratch":
		r.areas()
	case "params":
		d.paramsLine = r.line()
		r.params()
	default:
		r.fail("there is no %q; known are %s", key, known)
	}
}

// find finds a value by its name.
func find[T fmt.Stringer](name string, all []T) (T, error) {
	var names []string
	for _, v := range all {
		if v.String() == name {
			return v, nil
		}
		names = append(names, v.String())
	}
	var none T
	return none, fmt.Errorf("unknown, known are %s", strings.Join(names, " "))
}

// named reads a name or a list of names.
func named[T any](r *reader, what string, parse func(string) (T, error)) []T {
	var raw json.RawMessage
	r.value(what, &raw)
	var list []string
	var one string
	if json.Unmarshal(raw, &one) == nil {
		list = []string{one}
	} else if json.Unmarshal(raw, &list) != nil || len(list) == 0 || len(list) > maxList {
		r.fail("%s is neither a name nor a list of names", what)
	}
	var out []T
	for _, name := range list {
		v, err := parse(name)
		if err != nil {
			r.fail("%s %q: %s", what, name, reason(err))
		}
		out = append(out, v)
	}
	if what == "collective" && len(out) != 1 {
		r.fail("a kernel is one collective")
	}
	return out
}

// reason is an error without the field and value that the caller has said.
func reason(err error) string {
	var inv *api.InvalidError
	if errors.As(err, &inv) {
		return inv.Reason + ", " + inv.Hint
	}
	return err.Error()
}

// integers reads an integer or a list of them, each within bounds.
func (r *reader) integers(what string, lo, hi int64) []int64 {
	var raw json.RawMessage
	r.value(what, &raw)
	var list []int64
	var one int64
	if json.Unmarshal(raw, &one) == nil && string(raw) != "null" {
		list = []int64{one}
	} else if json.Unmarshal(raw, &list) != nil || len(list) == 0 || len(list) > 3 {
		r.fail("%s is neither an integer nor a list of up to three", what)
	}
	for _, v := range list {
		if v < lo || v > hi {
			r.fail("%s is %d, it can be %d to %d", what, v, lo, hi)
		}
	}
	return list
}

func (r *reader) integer(what string, lo, hi int64) int {
	list := r.integers(what, lo, hi)
	if len(list) != 1 {
		r.fail("%s is one integer", what)
	}
	return int(list[0])
}

func (r *reader) pair(what string) (lo, hi int) {
	list := r.integers(what, 0, math.MaxInt32)
	if len(list) > 2 {
		r.fail("%s are the least and the most", what)
	}
	return int(list[0]), int(list[len(list)-1])
}

func (r *reader) dims(what string) gpu.Dim3 {
	list := append(r.integers(what, 1, math.MaxInt32), 1, 1)
	return gpu.Dim3{X: uint32(list[0]), Y: uint32(list[1]), Z: uint32(list[2])}
}

func (r *reader) areas() {
	total := uint64(0)
	sizes := map[string]uint64{}
	r.object("scratch", func(name string) {
		if slices.Contains(words, name) || name == "" || strings.ContainsAny(name, ".: ") {
			r.fail("%q cannot be the name of a scratch buffer", name)
		}
		n := uint64(r.integer("the bytes of scratch "+name, 1, maxScratch))
		if total += n; total > maxScratch || len(sizes) >= maxList {
			r.fail("more than %d bytes of scratch, or more than %d buffers", maxScratch, maxList)
		}
		sizes[name] = n
	})
	r.d.Scratch = nil
	for _, name := range slices.Sorted(maps.Keys(sizes)) {
		r.d.Scratch = append(r.d.Scratch, Area{name, sizes[name]})
	}
}

// complete checks what only the whole shows.
func (r *reader) complete() {
	d := r.d
	for _, c := range []struct {
		name    string
		missing bool
	}{
		{"collective", d.Collective == nil}, {"dtypes", d.DTypes == nil}, {"block", d.Block.X == 0}, {"params", d.paramsLine == 0},
		{"ops", d.Ops == nil && d.Collective != nil && d.Collective.Reduces()},
	} {
		if c.missing {
			r.fail("%s is missing", c.name)
		}
	}
	at := func(key, format string, args ...any) {
		panic(&Error{r.file, d.lines[key], fmt.Sprintf(format, args...)})
	}
	switch {
	case api.IsMany(d.Collective):
		at("collective", "the many forms are not known here")
	case d.Ops != nil && !d.Collective.Reduces():
		at("ops", "%s reduces nothing", d.Collective.Name())
	case d.Block.Count() > 1024:
		at("block", "a block of %v, at most 1024 threads", d.Block)
	}
	for _, p := range d.Params {
		if p.Area != "" && d.area(p.Area) == nil && p.Area != "src" && p.Area != "dst" {
			panic(&Error{r.file, p.Line, fmt.Sprintf("there is no buffer %q; known are src, dst and the names in scratch", p.Area)})
		}
	}
}

func (d *Description) area(name string) *Area {
	i := slices.IndexFunc(d.Scratch, func(a Area) bool { return a.Name == name })
	if i < 0 {
		return nil
	}
	return &d.Scratch[i]
}

// quoted is text from a file, cut and safe to print.
func quoted(s string) string { return strconv.Quote(s[:min(len(s), 40)]) }
