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
// calls. What is left out is taken from what the implementation declares.
type matrixFlags struct {
	Collectives string `group:"Matrix:" placeholder:"LIST" help:"Collectives; all that the implementation has."`
	DTypes      string `group:"Matrix:" name:"dtypes" placeholder:"LIST" help:"Element types; all that the implementation has."`
	Ops         string `group:"Matrix:" placeholder:"LIST" help:"Operations; sum, prod, min and max."`
	Ranks       string `group:"Matrix:" default:"2,4,8" help:"Team sizes."`
	Counts      string `group:"Matrix:" placeholder:"LIST" help:"Elements; those around every threshold of the implementation."`
	SrcOffsets  string `group:"Matrix:" default:"0,1,8" help:"Elements from a 16-byte aligned base to the source; 0/1/3 gives ranks different ones, over and over."`
	DstOffsets  string `group:"Matrix:" default:"0,1,8" help:"The same for the destination."`
	InPlace     string `group:"Matrix:" default:"both" help:"false, true, start, or both for false and true."`
	Scopes      string `group:"Matrix:" default:"on_stream,block" help:"Scopes."`
	Inputs      string `group:"Matrix:" placeholder:"LIST" help:"Inputs as of --input; normal and bits for floats, bits for integers."`
	Seeds       string `group:"Matrix:" default:"1" help:"Seeds 1 to N."`
	Full        bool   `group:"Matrix:" help:"The whole product; else every pair of values at least once."`
}

// cases are the calls that the flags describe for an implementation.
func (f *matrixFlags) cases(impl api.Implementation) ([]matrix.Case, error) {
	p := parser{}
	axes := matrix.Axes{
		Collectives: list(&p, f.Collectives, api.ParseCollective),
		DTypes:      list(&p, f.DTypes, api.ParseDType),
		Ops:         list(&p, f.Ops, api.ParseOp),
		Counts:      list(&p, f.Counts, p.int64Of("counts")),
		SrcOffsets:  list(&p, f.SrcOffsets, offsetPattern("src-offsets")),
		DstOffsets:  list(&p, f.DstOffsets, offsetPattern("dst-offsets")),
		Scopes:      list(&p, f.Scopes, api.ParseScope),
		Inputs:      list(&p, f.Inputs, func(text string) (inputs.Input, error) { return inputs.Parse(text, 1) }),
		Thresholds:  impl.Thresholds,
	}
	for _, r := range list(&p, f.Ranks, p.int64Of("ranks")) {
		if r < 1 || r > api.MaxRanks {
			p.fail(&api.InvalidError{Field: "ranks", Value: fmt.Sprint(r), Reason: "out of range", Hint: fmt.Sprintf("1 to %d", api.MaxRanks)})
		}
		axes.Ranks = append(axes.Ranks, int(r))
	}
	axes.InPlace = p.inPlaceList(f.InPlace)
	axes.Seeds = p.seeds(f.Seeds)
	if p.err != nil {
		return nil, p.err
	}
	fillAxes(&axes, impl)
	cases := axes.Expand(f.Full)
	if len(cases) == 0 {
		return nil, &api.InvalidError{Field: "matrix", Reason: "the flags describe no sound call", Hint: "see compare record --help"}
	}
	return cases, nil
}

// fillAxes takes from the implementation what was not asked for.
func fillAxes(axes *matrix.Axes, impl api.Implementation) {
	if axes.Collectives == nil {
		axes.Collectives = impl.Collectives
	}
	if axes.DTypes == nil {
		axes.DTypes = impl.DTypes
	}
	if axes.Ops == nil {
		axes.Ops = []api.Op{api.Sum, api.Prod, api.Min, api.Max}
	}
	if axes.Inputs == nil {
		axes.Inputs = []inputs.Input{{}, {Kind: inputs.Bits}}
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
