package nvls

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"example.com/tandem/api"
	"example.com/tandem/api/num"
)

// Config is the arithmetic that a spec's parameters choose. The zero Config is
// the fabric nvlink5 with seeded directions.
type Config struct {
	Fabric  string
	Preset  string
	Dir     Final // "" leaves it to the preset
	Order   Order // "" leaves it to the preset
	Seed    uint64
	Profile *Profile
	edits   []edit // of the parameter space, for fabric=custom
}

// edit sets one parameter of the space.
type edit struct {
	name, value string
	set         func(*Model)
}

// parameter is one of a spec's parameters and how it is read.
type parameter struct {
	api.Param
	read func(c *Config, text string) (bool, error)
}

var dirs = map[string]Final{"seeded": DIR, "rz": RZ, "rne": RNE, "away": RA, "adversarial": Adversarial, "g1": G1}

func parameters() []parameter { return append(choices(), spaceParameters()...) }

// choices are the parameters that every family with a switch has.
func choices() []parameter {
	choice := func(set func(*Config, string), known []string) func(*Config, string) (bool, error) {
		return func(c *Config, text string) (bool, error) {
			set(c, text)
			return slices.Contains(known, text), nil
		}
	}
	return []parameter{
		{api.Param{Name: "fabric", Default: NVLink5, Values: strings.Join(FabricNames(), "|"), Help: "the generation of the switch, which decides the arithmetic"},
			choice(func(c *Config, v string) { c.Fabric = v }, FabricNames())},
		{api.Param{Name: "preset", Default: "the fabric's", Values: strings.Join(PresetNames(), "|"), Help: "in-switch arithmetic of sums, by name"},
			choice(func(c *Config, v string) { c.Preset = v }, PresetNames())},
		{api.Param{Name: "dir", Default: "the preset's", Values: "seeded|rz|rne|away|adversarial|g1", Help: "last rounding of 16-bit sums, for the model to assume: nobody knows the switch's"},
			func(c *Config, text string) (bool, error) { c.Dir = dirs[text]; return c.Dir != "", nil }},
		{api.Param{Name: "order", Default: "the preset's", Values: "rank|reverse|perm, or every rank from 0 on once, as 2-0-1", Help: "operand order of folds and trees, for the model to assume; perm draws one from seed"},
			func(c *Config, text string) (bool, error) { c.Order = Order(text); return validOrder(c.Order), nil }},
		{api.Param{Name: "seed", Default: "0", Values: "0..2^64-1", Help: "of seeded directions and of order=perm"},
			func(c *Config, text string) (bool, error) {
				v, err := strconv.ParseUint(text, 0, 64)
				c.Seed = v
				return err == nil, nil
			}},
		{api.Param{Name: "profile", Default: "unset: no profile", Values: "FILE", Help: "what compare probe wrote; its cells are exact"},
			func(c *Config, text string) (bool, error) {
				p, err := ReadProfile(text)
				c.Profile = p
				return true, err
			}},
	}
}

// spaceParameters are those of the parameter space itself, for fabric=custom.
func spaceParameters() []parameter {
	var out []parameter
	add := func(name, values string, set func(m *Model, text string) bool) {
		out = append(out, parameter{api.Param{Name: name, Default: "the preset's", Values: values, Help: "of the parameter space; fabric=custom only"},
			func(c *Config, text string) (bool, error) {
				c.edits = append(c.edits, edit{name, text, func(m *Model) { set(m, text) }})
				return set(&Model{}, text), nil
			}})
	}
	word := func(name string, apply func(*Model, string), known ...string) {
		add(name, strings.Join(known, "|"), func(m *Model, text string) bool { apply(m, text); return slices.Contains(known, text) })
	}
	number := func(name string, lo, hi int, field func(*Model) *int) {
		add(name, fmt.Sprintf("%d..%d", lo, hi), func(m *Model, text string) bool {
			v, err := strconv.Atoi(text)
			*field(m) = v
			return err == nil && v >= lo && v <= hi
		})
	}
	flag := func(name string, field func(*Model) *bool) {
		word(name, func(m *Model, v string) { *field(m) = v == "on" }, "on", "off")
	}
	word("kind", func(m *Model, v string) { m.Kind = Kind(v) }, "exact", "window", "aligned", "fold", "tree")
	word("acc", func(m *Model, v string) { m.Acc = Acc(v) }, "same", "f16", "f32")
	word("step", func(m *Model, v string) { m.Step = Final(v) }, "rne", "rz")
	number("granule", 1, 256, func(m *Model) *int { return &m.Granule })
	number("term_bits", 0, 2200, func(m *Model) *int { return &m.TermBits })
	number("result_bits", 0, 2200, func(m *Model) *int { return &m.ResultBits })
	number("align_bits", 1, 2200, func(m *Model) *int { return &m.AlignBits })
	word("final", func(m *Model, v string) { m.Final = Final(v) }, "rne", "rna", "rhu", "rz", "away", "rtn", "rtp", "odd", "g1", "seeded", "adversarial")
	word("overflow", func(m *Model, v string) { m.Overflow = Overflow(v) }, "ieee", "maxfinite", "nan")
	word("minmax_zero", func(m *Model, v string) { m.MinMaxZero = MinMaxZero(v) }, "ordered", "either")
	word("minmax_nan", func(m *Model, v string) { m.PassNaN = v == "propagate" }, "ignore", "propagate")
	word("acc_effect", func(m *Model, v string) { m.AccEffect = AccEffect(v) }, "none", "selects")
	flag("ftz_in", func(m *Model) *bool { return &m.FTZIn })
	flag("ftz_out", func(m *Model) *bool { return &m.FTZOut })
	flag("keep_neg_zero", func(m *Model) *bool { return &m.KeepNeg0 })
	flag("keep_nan", func(m *Model) *bool { return &m.KeepNaN })
	return out
}

func validOrder(o Order) bool {
	if o == OrderRank || o == OrderReverse || o == OrderPerm {
		return true
	}
	_, ok := o.listed()
	return ok
}

// Params lists the parameters about the arithmetic that every family with a
// switch has.
func Params() []api.Param { return paramsOf(choices()) }

// SpaceParams lists those of the parameter space, which the family nvls has
// besides; elsewhere a profile says as much.
func SpaceParams() []api.Param { return paramsOf(spaceParameters()) }

func paramsOf(list []parameter) []api.Param {
	var out []api.Param
	for _, p := range list {
		out = append(out, p.Param)
	}
	return out
}

// Known reports whether a parameter is one of [Params].
func Known(name string) bool {
	return slices.ContainsFunc(choices(), func(p parameter) bool { return p.Name == name })
}

// knownToSpace reports whether a parameter is one of [SpaceParams].
func knownToSpace(name string) bool {
	return slices.ContainsFunc(spaceParameters(), func(p parameter) bool { return p.Name == name })
}

// Parse reads those of a spec's parameters that are about the arithmetic, and
// leaves the others alone. The error is an *api.InvalidError.
func Parse(params map[string]string) (Config, error) {
	c := Config{Fabric: NVLink5}
	for _, p := range parameters() {
		text, ok := params[p.Name]
		if !ok {
			continue
		}
		ok, err := p.read(&c, text)
		if err != nil {
			return Config{}, err
		}
		if !ok {
			return Config{}, &api.InvalidError{Field: p.Name, Value: text, Reason: "not a value of this parameter", Hint: "values: " + p.Values}
		}
	}
	return c, c.check()
}

// check finds parameters that contradict each other.
func (c *Config) check() error {
	custom := c.Fabric == Custom
	switch {
	case len(c.edits) > 0 && !custom:
		return &api.InvalidError{Field: c.edits[0].name, Value: c.edits[0].value, Reason: "the parameters of the space belong to fabric=custom", Hint: "say fabric=custom, and preset= as the point to start from"}
	case custom && c.Preset == "" && c.Profile == nil && len(c.edits) == 0:
		return &api.InvalidError{Field: "fabric", Value: Custom, Reason: "it says nothing by itself", Hint: "add preset= or profile=; nvls takes parameters of the space such as kind= and final= too"}
	}
	return nil
}

// Missing says that the switch of a fabric does not do a reduction.
type Missing struct{ Reason, Hint string }

// Error is the reason.
func (e *Missing) Error() string { return e.Reason }

// Model is the arithmetic of op on d; acc32 says that sums carry .acc::f32, as
// every library's do now. The error is an *Missing.
func (c *Config) Model(d num.DType, op num.Op, acc32 bool) (Model, error) {
	if op != num.Sum || !d.Float() {
		return c.plain(d, op)
	}
	m, err := c.base(d, acc32)
	if err != nil {
		return Model{}, err
	}
	for _, e := range c.edits {
		e.set(&m)
	}
	// A preset that is asked for by name is what its name says.
	if named := c.Preset != "" && len(c.edits) == 0; !named && m.AccEffect == AccSelects && acc32 && d.Size() == 2 {
		m.Acc = AccF32
	}
	m.Seed = c.Seed
	if m.Fitted {
		return m, nil
	}
	if c.Order != "" {
		m.Order = c.Order
	}
	if c.Dir != "" && d.Size() == 2 {
		m.Final = c.Dir
	}
	return m, m.valid(d)
}

// plain is the arithmetic of what is not a floating sum.
func (c *Config) plain(d num.DType, op num.Op) (Model, error) {
	if len(Widths(d, op)) == 0 {
		return Model{}, &Missing{fmt.Sprintf("no multimem.ld_reduce does %v of %v", op, d), "sum of f16, bf16, f32, f64 and 32- and 64-bit integers; min and max of f16, bf16 and those integers; and, or, xor of any integer"}
	}
	if d.Size() == 1 && d.Float() {
		return Model{}, &Missing{fmt.Sprintf("nothing is known of %v of %v in a switch", op, d), "sum"}
	}
	m := Model{Name: "ignore_nan", Kind: KindExact, Final: RNE}
	if c.Profile != nil {
		if cell, ok := c.Profile.Cell(d, op); ok {
			return cell, nil
		}
		m.remark = c.Profile.without(d, op)
	}
	for _, e := range c.edits {
		e.set(&m)
	}
	return m, nil
}

// base is the model before what the parameters change.
func (c *Config) base(d num.DType, acc32 bool) (Model, error) {
	if c.Profile != nil {
		if m, ok := c.Profile.Cell(d, num.Sum); ok {
			return m, nil
		}
	}
	fabric := fabrics[cmp.Or(c.Fabric, NVLink5)]
	name := cmp.Or(c.Preset, fabric.Preset(d, acc32))
	if name == "" {
		if fabric.Name == Custom && len(c.edits) > 0 {
			return Model{Name: Custom, Kind: KindExact, Final: RNE, Granule: 16, AlignBits: 25}, nil
		}
		return Model{}, &Missing{fmt.Sprintf("the switch of fabric %s has no sum of %v", fabric.Name, d), "another fabric, or preset="}
	}
	p, _ := PresetOf(name)
	if c.Profile != nil {
		p.Model.remark = c.Profile.without(d, num.Sum)
	}
	if !slices.Contains(p.DTypes, d) {
		return Model{}, &Missing{fmt.Sprintf("preset %s is not about %v", name, d), fmt.Sprintf("it is about %v", p.DTypes)}
	}
	return p.Model, nil
}

// valid refuses points of the space that mean nothing.
func (m *Model) valid(d num.DType) error {
	switch {
	case m.Kind == KindWindow && m.Granule < 1:
		return &Missing{"a window without granule", "granule=16"}
	case m.Kind == KindAligned && m.AlignBits < 1:
		return &Missing{"aligned without align_bits", "align_bits=25"}
	case m.stepwise() && m.Acc == AccF32 && d == num.F64, m.stepwise() && m.Acc == AccF16 && d.Size() != 1:
		return &Missing{fmt.Sprintf("accumulator %s is narrower than %v", m.Acc, d), "acc=same"}
	}
	return nil
}

// Evidence says how the arithmetic of op on d is known.
func (c *Config) Evidence(d num.DType, op num.Op) api.Evidence {
	m, err := c.Model(d, op, true)
	switch p, named := PresetOf(m.Name); {
	case err != nil:
		return api.Assumed
	case m.Fitted:
		return api.Recorded
	case !d.Float():
		return api.FromSource
	case op != num.Sum:
		return api.Reported
	case !named || len(c.edits) > 0:
		return api.Assumed
	default:
		return p.Evidence
	}
}

// Contract is what a value of op on d may be held to: exact where the model is
// one of which every bit is known or was measured, faithful elsewhere.
func (c *Config) Contract(d num.DType, op num.Op) api.Contract {
	m, err := c.Model(d, op, true)
	switch {
	case op != num.Sum || !d.Float() || m.Fitted:
		return api.Exact
	case err == nil && d.Size() > 2 && m.Determined(d, op), m.Name == "ideal_rne" || m.Name == "ref_stepwise" || m.Name == "mma_like":
		return api.Exact
	}
	return api.Faithful
}

// Algorithm is what a plan says of values that the arithmetic makes.
func (c *Config) Algorithm(d num.DType, op num.Op) api.Algorithm {
	a := api.Algorithm{Evidence: c.Evidence(d, op), Contract: c.Contract(d, op)}
	m, err := c.Model(d, op, true)
	if err != nil {
		return a
	}
	a.Fitted = m.Fitted
	if a.Contract == api.Faithful && m.stepwise() {
		kind := api.AnyOrder{Acc: m.accumulator(d), Tree: m.Kind == KindTree}
		if m.Step == RZ {
			kind.Step = num.TowardZero
		}
		a.AnyOrder = []api.AnyOrder{kind}
	}
	return a
}

// Names lists those of a spec's parameters that are [Params].
func Names(params map[string]string) []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(params)), func(n string) bool { return !Known(n) })
}
