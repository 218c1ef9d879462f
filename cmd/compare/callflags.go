package main

import (
	"math/bits"
	"strconv"
	"strings"

	"github.com/alecthomas/kong"

	"example.com/tandem/api"
	"example.com/tandem/conformance/inputs"
)

// callFlags are the CALL flags. All are texts, so that what is wrong with one
// is said in our own words; defaults that depend on others are left empty.
type callFlags struct {
	Collective string      `group:"Call:" default:"all_reduce" help:"all_reduce, reduce_scatter, all_gather, broadcast, all_to_all, all_gather_many or reduce_scatter_many."`
	DType      string      `group:"Call:" name:"dtype" default:"bf16" help:"bf16, f16, f32, f64, e4m3, e5m2, i8..i64 or u8..u64."`
	Op         string      `group:"Call:" placeholder:"sum" help:"sum, prod, min, max, avg, and, or or xor; left out for collectives that copy."`
	Ranks      string      `group:"Call:" default:"2" help:"Ranks of the team."`
	Count      string      `group:"Call:" placeholder:"1048573" help:"Elements a rank gives (gets in reduce_scatter; per block in all_to_all)."`
	SrcOffset  string      `group:"Call:" default:"0" help:"Elements from a 16-byte aligned base to the source; a comma list gives one per rank."`
	DstOffset  string      `group:"Call:" default:"0" help:"The same for the destination."`
	InPlace    inPlaceFlag `group:"Call:" help:"Destination inside the source, or source inside the destination; --in-place=start for a reduce_scatter to the start of its source."`
	Root       string      `group:"Call:" default:"0" help:"The giving rank of a broadcast."`
	Scope      string      `group:"Call:" default:"on_stream" help:"on_stream, block, warp or thread."`
	Team       string      `group:"Call:" default:"world" help:"world, or sub: a proper subset of a larger world."`
	Lanes      string      `group:"Call:" placeholder:"1024,7,f32:0" help:"Lanes of a many form: count or dtype:count each."`
	Mode       string      `group:"Call:" placeholder:"MODE" help:"Reduction mode, where an implementation has several."`
}

// inputFlags say what the sources hold.
type inputFlags struct {
	Input  string `group:"Call:" placeholder:"normal" help:"normal, finite, bits, uniform:LO:HI, order_free, ones or file:DIR; integers get bits."`
	Seed   string `group:"Call:" default:"1" help:"Seed of a random input."`
	Values string `group:"Call:" placeholder:"0x4380,0x3f80" help:"One bit pattern a rank, the same in all its elements, in place of --input."`
}

const defaultCount = "1048573"

// inPlaceFlag is --in-place and --in-place=start.
type inPlaceFlag api.InPlace

// IsBool tells kong that the flag may stand without a value.
func (*inPlaceFlag) IsBool() bool { return true }

// Decode reads what follows the flag, if it is joined to it by "=".
func (f *inPlaceFlag) Decode(ctx *kong.DecodeContext) error {
	*f = inPlaceFlag(api.InPlaceOwn)
	if ctx.Scan.Peek().Type != kong.FlagValueToken {
		return nil
	}
	switch text := ctx.Scan.Pop().String(); text {
	case "true", "own":
	case "start":
		*f = inPlaceFlag(api.InPlaceStart)
	case "false":
		*f = inPlaceFlag(api.OutOfPlace)
	default:
		return &api.InvalidError{Field: "in-place", Value: text, Reason: "unknown", Hint: "write --in-place or --in-place=start"}
	}
	return nil
}

// call is the call that the flags describe, validated.
func (f *callFlags) call() (api.Call, error) {
	var c api.Call
	p := parser{}
	c.Collective = parse(&p, f.Collective, api.ParseCollective)
	c.DType = parse(&p, f.DType, api.ParseDType)
	c.Scope = parse(&p, f.Scope, api.ParseScope)
	c.Team = parse(&p, f.Team, api.ParseTeamKind)
	c.Ranks = int(p.integer("ranks", f.Ranks))
	c.Root = int(p.integer("root", f.Root))
	c.SrcOffset = p.offsets("src-offset", f.SrcOffset)
	c.DstOffset = p.offsets("dst-offset", f.DstOffset)
	c.InPlace, c.Mode = api.InPlace(f.InPlace), f.Mode
	if p.err != nil {
		return c, p.err
	}
	f.opAndCount(&p, &c)
	if p.err != nil {
		return c, p.err
	}
	return c, c.Validate()
}

// opAndCount reads the flags whose defaults depend on the collective.
func (f *callFlags) opAndCount(p *parser, c *api.Call) {
	switch {
	case f.Op != "":
		c.Op = parse(p, f.Op, api.ParseOp)
	case c.Collective.Reduces():
		c.Op = api.Sum
	}
	if api.IsMany(c.Collective) {
		if f.Count != "" {
			p.fail(&api.InvalidError{Field: "count", Value: f.Count, Reason: c.Collective.Name() + " has a count per lane", Hint: "use --lanes 1024,7,f32:0"})
		}
	} else {
		text := f.Count
		if text == "" {
			text = defaultCount
		}
		c.Count = p.integer("count", text)
	}
	if f.Lanes != "" {
		for text := range strings.SplitSeq(f.Lanes, ",") {
			c.Many = append(c.Many, parse(p, strings.TrimSpace(text), api.ParseLane))
		}
	}
}

// input is what the sources of the call hold.
func (f *inputFlags) input(c *api.Call) (inputs.Input, error) {
	seed, err := strconv.ParseUint(f.Seed, 0, 64)
	if err != nil {
		return inputs.Input{}, &api.InvalidError{Field: "seed", Value: f.Seed, Reason: "not a seed", Hint: "0 to 18446744073709551615"}
	}
	switch {
	case f.Values != "" && f.Input != "":
		return inputs.Input{}, &api.InvalidError{Field: "values", Value: f.Values, Reason: "given together with --input", Hint: "use one of the two"}
	case f.Values != "":
		return inputs.ParseValues(f.Values)
	case f.Input != "":
		return inputs.Parse(f.Input, seed)
	}
	in := inputs.Default(c)
	in.Seed = seed
	return in, nil
}

// parser reads values until one is wrong, and keeps the first error.
type parser struct{ err error }

func (p *parser) fail(err error) {
	if p.err == nil {
		p.err = err
	}
}

func parse[T any](p *parser, text string, f func(string) (T, error)) T {
	v, err := f(text)
	if err != nil {
		p.fail(err)
	}
	return v
}

// integer reads a decimal integer. One that does not fit is told apart from
// one that is none; what range it must be in is for Validate to say.
func (p *parser) integer(field, text string) int64 {
	v, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		reason := "not an integer"
		if e, ok := err.(*strconv.NumError); ok && e.Err == strconv.ErrRange {
			reason = "does not fit into 64 bits"
		}
		p.fail(&api.InvalidError{Field: field, Value: text, Reason: reason, Hint: "write a decimal integer"})
	}
	return v
}

func (p *parser) offsets(field, text string) api.Offsets {
	var out api.Offsets
	for part := range strings.SplitSeq(text, ",") {
		out = append(out, p.integer(field, strings.TrimSpace(part)))
	}
	return out
}

// byteSize reads a number of bytes: 8GiB, 512MiB, 1048576.
func (p *parser) byteSize(field, text string) int64 {
	number, shift := text, 0
	for i, unit := range []string{"KiB", "MiB", "GiB", "TiB"} {
		if n, ok := strings.CutSuffix(text, unit); ok {
			number, shift = n, 10*(i+1)
		}
	}
	v, err := strconv.ParseUint(strings.TrimSpace(number), 10, 63)
	if err != nil || v == 0 || bits.Len64(v)+shift > 63 {
		p.fail(&api.InvalidError{Field: field, Value: text, Reason: "not a number of bytes", Hint: "write 8GiB, 512MiB or 1048576"})
		return 0
	}
	return int64(v) << shift
}
