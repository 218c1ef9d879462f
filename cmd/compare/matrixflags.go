package main

import (
	"fmt"
	"strconv"
	"strings"

	"example.com/tandem/api"
	"example.com/tandem/conformance/inputs"
	"example.com/tandem/conformance/matrix"
)

// matrixFlags are the MATRIX flags: lists, whose product or pairs are the
// calls. What is left out is taken from what the implementations declare.
type matrixFlags struct {
	Collectives string `group:"Matrix:" placeholder:"LIST" help:"Collectives; all that the implementation has." json:"collectives,omitempty"`
	DTypes      string `group:"Matrix:" name:"dtypes" placeholder:"LIST" help:"Element types; all that the implementation has." json:"dtypes,omitempty"`
	Ops         string `group:"Matrix:" placeholder:"LIST" help:"Operations." json:"ops,omitempty"`
	Ranks       string `group:"Matrix:" placeholder:"LIST" help:"Team sizes." json:"ranks,omitempty"`
	Counts      string `group:"Matrix:" placeholder:"LIST" help:"Elements; those around every threshold of the implementation." json:"counts,omitempty"`
	SrcOffsets  string `group:"Matrix:" placeholder:"LIST" help:"Elements from a 16-byte aligned base to the source; 0/1/3 gives ranks different ones, over and over." json:"src_offsets,omitempty"`
	DstOffsets  string `group:"Matrix:" placeholder:"LIST" help:"The same for the destination." json:"dst_offsets,omitempty"`
	InPlace     string `group:"Matrix:" placeholder:"LIST" help:"false, true, start, or both for false and true." json:"in_place,omitempty"`
	Scopes      string `group:"Matrix:" placeholder:"LIST" help:"Scopes." json:"scopes,omitempty"`
	Inputs      string `group:"Matrix:" placeholder:"LIST" help:"Inputs as of --input, special: a value a rank at which rules differ, or values:0x4380/0x3f80." json:"inputs,omitempty"`
	Seeds       string `group:"Matrix:" default:"1" help:"Seeds 1 to N." json:"seeds"`
	Full        bool   `group:"Matrix:" help:"The whole product; else every pair of values at least once." json:"full,omitempty"`
}

// axes are those that the flags give; what they leave out is nil.
func (f *matrixFlags) axes() (matrix.Axes, error) {
	p := parser{}
	a := matrix.Axes{
		Collectives: list(&p, f.Collectives, api.ParseCollective),
		DTypes:      list(&p, f.DTypes, api.ParseDType),
		Ops:         list(&p, f.Ops, api.ParseOp),
		Counts:      list(&p, f.Counts, p.int64Of("counts")),
		SrcOffsets:  list(&p, f.SrcOffsets, offsetPattern("src-offsets")),
		DstOffsets:  list(&p, f.DstOffsets, offsetPattern("dst-offsets")),
		Scopes:      list(&p, f.Scopes, api.ParseScope),
		Inputs:      list(&p, f.Inputs, matrixInput),
	}
	for _, r := range list(&p, f.Ranks, p.int64Of("ranks")) {
		if r < 1 || r > api.MaxRanks {
			p.fail(&api.InvalidError{Field: "ranks", Value: fmt.Sprint(r), Reason: "out of range", Hint: fmt.Sprintf("1 to %d", api.MaxRanks)})
		}
		a.Ranks = append(a.Ranks, int(r))
	}
	a.InPlace = p.inPlaceList(f.InPlace)
	a.Seeds = p.seeds(f.Seeds)
	return a, p.err
}

// matrixInput reads an input of the list.
func matrixInput(text string) (inputs.Input, error) {
	if text == "special" {
		return matrix.Special, nil
	}
	if values, ok := strings.CutPrefix(text, "values:"); ok {
		return inputs.ParseValues(strings.ReplaceAll(values, "/", ","))
	}
	return inputs.Parse(text, 1)
}

// cases are the calls that the flags describe for one implementation.
func (f *matrixFlags) cases(impl api.Implementation) ([]matrix.Case, error) {
	axes, err := f.axes()
	if err != nil {
		return nil, err
	}
	fillAxes(&axes, impl)
	if err := boundFull(f.Full, axes); err != nil {
		return nil, err
	}
	cases := axes.Expand(f.Full)
	if len(cases) == 0 {
		return nil, errNoCalls
	}
	return cases, nil
}

// maxFull bounds what --full may ask for: the calls are listed before the first
// is made.
const maxFull = 1 << 20

func boundFull(full bool, axes ...matrix.Axes) error {
	var n float64
	for i := range axes {
		n += axes[i].Size()
	}
	if full && n > maxFull {
		return &api.InvalidError{Field: "full", Value: fmt.Sprintf("%.3g combinations", n), Reason: fmt.Sprintf("more than %d", maxFull), Hint: "give shorter lists or fewer seeds, or leave out --full"}
	}
	return nil
}

var errNoCalls = &api.InvalidError{Field: "matrix", Reason: "the flags describe no sound call", Hint: "compare record --help and compare sweep --help say what the lists take"}

// fillAxes takes from the implementation what was not asked for.
func fillAxes(axes *matrix.Axes, impl api.Implementation) {
	few := []api.Offsets{{0}, {1}, {8}}
	orElse(&axes.Collectives, impl.Collectives)
	orElse(&axes.DTypes, impl.DTypes)
	orElse(&axes.Ops, []api.Op{api.Sum, api.Prod, api.Min, api.Max})
	orElse(&axes.Ranks, []int{2, 4, 8})
	orElse(&axes.SrcOffsets, few)
	orElse(&axes.DstOffsets, few)
	orElse(&axes.InPlace, []api.InPlace{api.OutOfPlace, api.InPlaceOwn})
	orElse(&axes.Scopes, []api.Scope{api.OnStream, api.Block})
	orElse(&axes.Inputs, []inputs.Input{{}, {Kind: inputs.Bits}})
	axes.Thresholds = impl.Thresholds
}

func orElse[T any](axis *[]T, values []T) {
	if *axis == nil {
		*axis = values
	}
}

// list reads a comma list; "" is none.
func list[T any](p *parser, text string, f func(string) (T, error)) []T {
	if text == "" {
		return nil
	}
	var out []T
	for part := range strings.SplitSeq(text, ",") {
		out = append(out, parse(p, strings.TrimSpace(part), f))
	}
	return out
}

func (p *parser) int64Of(field string) func(string) (int64, error) {
	return func(text string) (int64, error) {
		q := parser{}
		v := q.integer(field, text)
		return v, q.err
	}
}

// offsetPattern reads an offset, or 0/1/3: one for each rank, over and over.
func offsetPattern(field string) func(string) (api.Offsets, error) {
	return func(text string) (api.Offsets, error) {
		q := parser{}
		var out api.Offsets
		for part := range strings.SplitSeq(text, "/") {
			out = append(out, q.integer(field, part))
		}
		return out, q.err
	}
}

func (p *parser) inPlaceList(text string) []api.InPlace {
	var out []api.InPlace
	for _, word := range list(p, text, func(s string) (string, error) { return s, nil }) {
		switch word {
		case "both":
			out = append(out, api.OutOfPlace, api.InPlaceOwn)
		case "false":
			out = append(out, api.OutOfPlace)
		case "true":
			out = append(out, api.InPlaceOwn)
		case "start":
			out = append(out, api.InPlaceStart)
		default:
			p.fail(&api.InvalidError{Field: "in-place", Value: word, Reason: "unknown", Hint: "known are false, true, start and both"})
		}
	}
	return out
}

// maxSeeds bounds what a slip of the finger asks for.
const maxSeeds = 1 << 20

func (p *parser) seeds(text string) []uint64 {
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil || n < 1 || n > maxSeeds {
		p.fail(&api.InvalidError{Field: "seeds", Value: text, Reason: "not a number of seeds", Hint: fmt.Sprintf("1 to %d", maxSeeds)})
		return nil
	}
	out := make([]uint64, n)
	for i := range out {
		out[i] = uint64(i) + 1
	}
	return out
}
