package main

import (
	"fmt"
	"math"
	"strconv"
	"time"

	"example.com/tandem/api"
	"example.com/tandem/cmd/compare/internal/bench"
	"example.com/tandem/cmd/compare/internal/term"
)

// Bounds of what is timed.
const (
	maxSamples = 100_000
	maxCalls   = 1000
	maxSizes   = 64
	maxGap     = 10 * time.Millisecond
)

// config is what the flags ask for.
func (f *benchFlags) config() (bench.Config, error) {
	p := parser{}
	c := bench.Config{
		Samples: int(p.within("samples", f.Samples, 1, maxSamples)),
		WarmUp:  int(p.within("warm-up", f.WarmUp, 0, maxSamples)),
		Calls:   int(p.within("calls", f.Calls, 1, maxCalls)),
		Floors:  f.Floors,
	}
	sizes := f.sizes(&p)
	gap := p.duration("gap", f.Gap)
	base := bench.Point{DType: f.DType, Ranks: int(p.within("ranks", f.Ranks, 1, api.MaxRanks)), InPlace: f.InPlace,
		SrcOffset: p.within("src-offset", f.SrcOffset, 0, api.MaxCount), DstOffset: p.within("dst-offset", f.DstOffset, 0, api.MaxCount)}
	lanes := int(p.within("lanes", f.Lanes, 1, api.MaxLanes))
	launches := f.launches(&p)
	if p.err != nil {
		return c, p.err
	}
	for _, name := range fields(f.Collective) {
		k, err := api.ParseCollective(name)
		if err != nil {
			return c, err
		}
		for _, launch := range launches {
			for _, n := range sizes {
				point := base
				point.Collective, point.Launch, point.Bytes = name, launch, n
				if k.Reduces() {
					point.Op = f.Op
				}
				if api.IsMany(k) {
					point.Lanes = lanes
				}
				if launch == bench.Gaps {
					point.Gap = float64(gap.Nanoseconds()) / 1e3
				}
				if err := point.Fit(); err != nil {
					return c, err
				}
				c.Points = append(c.Points, point)
			}
		}
	}
	if len(c.Points) == 0 {
		return c, &api.InvalidError{Field: "collective", Value: f.Collective, Reason: "there is nothing to time", Hint: "all_gather, all_reduce, reduce_scatter"}
	}
	return c, nil
}

// sizes are the bytes of a rank's source, in order.
func (f *benchFlags) sizes(p *parser) []int64 {
	var out []int64
	if f.Bytes != "" {
		for _, text := range fields(f.Bytes) {
			out = append(out, p.byteSize("bytes", text))
		}
		return out
	}
	lo, hi := p.byteSize("min-bytes", f.MinBytes), p.byteSize("max-bytes", f.MaxBytes)
	step := p.within("step", f.Step, 2, 1<<20)
	if p.err == nil && lo > hi {
		p.fail(&api.InvalidError{Field: "min-bytes", Value: f.MinBytes, Reason: "more than --max-bytes " + f.MaxBytes})
	}
	for n := lo; p.err == nil && n <= hi && len(out) < maxSizes; n *= step {
		out = append(out, n)
		if n > math.MaxInt64/step {
			break
		}
	}
	return out
}

func (f *benchFlags) launches(p *parser) []bench.Launch {
	var out []bench.Launch
	for _, text := range fields(f.Launch) {
		known := false
		for _, l := range bench.Launches() {
			known = known || string(l) == text
		}
		if !known {
			p.fail(&api.InvalidError{Field: "launch", Value: text, Reason: "unknown", Hint: fmt.Sprintf("known are %v", bench.Launches())})
		}
		out = append(out, bench.Launch(text))
	}
	return out
}

// within reads an integer of a range.
func (p *parser) within(field, text string, lo, hi int64) int64 {
	v := p.integer(field, text)
	if p.err == nil && (v < lo || v > hi) {
		p.fail(&api.InvalidError{Field: field, Value: text, Reason: "out of range", Hint: fmt.Sprintf("%d to %d", lo, hi)})
	}
	return v
}

func (p *parser) percent(field, text string) float64 {
	v, err := strconv.ParseFloat(text, 64)
	if err != nil || !(v >= 0) || math.IsInf(v, 0) {
		p.fail(&api.InvalidError{Field: field, Value: text, Reason: "not a number of percent", Hint: "5 or 2.5"})
	}
	return v
}

func (p *parser) duration(field, text string) time.Duration {
	d, err := time.ParseDuration(text)
	if err != nil || d <= 0 || d > maxGap {
		p.fail(&api.InvalidError{Field: field, Value: text, Reason: "not such a time", Hint: fmt.Sprintf("5us, at most %v", maxGap)})
	}
	return d
}

// benchProgress shows on a terminal what is being timed.
func (a *app) benchProgress() func(done, all int, what string) {
	if !term.Wants(a.stderr, false, a.getenv) {
		return nil
	}
	return func(done, all int, what string) {
		fmt.Fprintf(a.stderr, "\r%d of %d: %-60.60s", done+1, all, what)
		if done+1 == all {
			fmt.Fprint(a.stderr, "\r\n")
		}
	}
}
