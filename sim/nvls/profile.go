package nvls

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"example.com/tandem/api"
	"example.com/tandem/api/num"
)

// ProfileSchema names the format of a profile.
const ProfileSchema = "tandem.nvls_profile/1"

// maxProfile bounds a file in bytes.
const maxProfile = 1 << 20

// Profile is the arithmetic of one fabric as a probe has measured it.
type Profile struct {
	Schema string        `json:"schema"`
	Of     string        `json:"of"` // the spec that was probed
	Cells  []ProfileCell `json:"cells"`
	// Refused are the cells that what was probed does not do, and why.
	Refused []string `json:"refused,omitempty"`
}

// ProfileCell is the arithmetic of one operation on one type.
type ProfileCell struct {
	DType string `json:"dtype"`
	Op    string `json:"op"`
	Ranks int    `json:"ranks"` // of the team that was probed
	// Exact says that every probe agreed with the model bit for bit, so that it
	// may be held to.
	Exact    bool     `json:"exact"`
	Verdict  string   `json:"verdict"`
	Evidence []string `json:"evidence"`
	Model    Model    `json:"model"`
}

// Cell is the model of op on d, if the profile has one that is exact.
func (p *Profile) Cell(d num.DType, op num.Op) (Model, bool) {
	c := p.find(d, op)
	if c == nil || !c.Exact {
		return Model{}, false
	}
	m := c.Model
	m.Fitted, m.Unordered = true, false
	m.remark = fmt.Sprintf(", on %d ranks; that other teams of that fabric do the same is assumed", c.Ranks)
	return m, true
}

// without says why the profile leaves op on d to the preset.
func (p *Profile) without(d num.DType, op num.Op) string {
	if c := p.find(d, op); c != nil {
		verdict, _, _ := strings.Cut(c.Verdict, ":")
		return fmt.Sprintf("; the preset's, since the profile does not know it exactly (%.120s)", verdict)
	}
	return fmt.Sprintf("; the preset's, since the profile has no %v of %v", op, d)
}

func (p *Profile) find(d num.DType, op num.Op) *ProfileCell {
	for i := range p.Cells {
		if c := &p.Cells[i]; c.DType == d.String() && c.Op == op.String() {
			return c
		}
	}
	return nil
}

// ReadProfile reads a file that compare probe wrote. The error is an
// *api.InvalidError.
func ReadProfile(path string) (*Profile, error) {
	bad := func(reason string) (*Profile, error) {
		return nil, &api.InvalidError{Field: "profile", Value: path, Reason: reason, Hint: "name a file that compare probe SPEC -o FILE wrote"}
	}
	f, err := api.OpenFile(path)
	if err != nil {
		return bad("it cannot be opened")
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxProfile+1))
	switch {
	case err != nil:
		return bad("it cannot be read")
	case len(text) > maxProfile:
		return bad(fmt.Sprintf("it has more than %d bytes", maxProfile))
	}
	p, err := ParseProfile(text)
	if err != nil {
		return bad(err.Error())
	}
	return p, nil
}

// ParseProfile reads the text of a profile.
func ParseProfile(text []byte) (*Profile, error) {
	var p Profile
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&p); err != nil {
		return nil, fmt.Errorf("it is no profile: %v", err)
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, errors.New("something follows the profile")
	}
	if p.Schema != ProfileSchema {
		return nil, fmt.Errorf("its schema is %.40q, not %q", p.Schema, ProfileSchema)
	}
	exact := 0
	for i := range p.Cells {
		c := &p.Cells[i]
		if err := c.check(); err != nil {
			return nil, fmt.Errorf("cell %d, %.20s of %.20s: %w", i, c.Op, c.DType, err)
		}
		for k, o := range p.Cells[:i] {
			if o.DType == c.DType && o.Op == c.Op {
				return nil, fmt.Errorf("cells %d and %d are both of %s of %s, on %d and %d ranks: keep one of them", k, i, c.Op, c.DType, o.Ranks, c.Ranks)
			}
		}
		if c.Exact {
			exact++
		}
	}
	if exact == 0 {
		return nil, errors.New("none of its cells is exact, so that it decides nothing (dir= chooses a direction where none is known)")
	}
	return &p, nil
}

// check refuses a cell that contradicts itself or means nothing.
func (c *ProfileCell) check() error {
	d, err := num.ParseDType(c.DType)
	if err != nil {
		return err
	}
	op, err := num.ParseOp(c.Op)
	if err != nil || !op.ValidFor(d) || op == num.Prod || op == num.Avg {
		return errors.New("a switch has no such reduction")
	}
	m := &c.Model
	if err := m.known(); err != nil {
		return err
	}
	if err := m.valid(d); err != nil {
		return err
	}
	if c.Ranks < 2 || c.Ranks > MaxDomain {
		return fmt.Errorf("it was measured on %d ranks, and a switch has 2 to %d", c.Ranks, MaxDomain)
	}
	order, listed := m.Order.listed()
	switch {
	case op != num.Sum || !d.Float():
		if m.Kind != KindExact {
			return fmt.Errorf("kind %s is of floating sums: exact", m.Kind)
		}
	case listed && len(order) != c.Ranks:
		return fmt.Errorf("order %s names %d ranks, and it was measured on %d", m.Order, len(order), c.Ranks)
	}
	if name := m.meaningless(); name != "" {
		return fmt.Errorf("%s means nothing where the kind is %s: leave it out", name, m.Kind)
	}
	// A switch that always takes the worse neighbour is a function of its inputs.
	if c.Exact && m.Final != Adversarial && !m.Determined(d, op) {
		return fmt.Errorf("it says that it is exact, and by its own model (last rounding %s) no function of the inputs gives the result", m.Final)
	}
	return nil
}

// meaningless names a parameter that is set and that the kind does not have.
func (m *Model) meaningless() string {
	step, window := m.stepwise(), m.Kind == KindWindow
	for _, p := range []struct {
		name string
		bad  bool
	}{
		{"acc", m.Acc != "" && !step}, {"step", m.Step != "" && !step}, {"order", m.Order != "" && !step},
		{"unordered", m.Unordered && !step}, {"keep_nan", m.KeepNaN && (!step || m.Acc != AccSame)},
		{"granule", m.Granule != 0 && !window}, {"term_bits", m.TermBits != 0 && !window}, {"result_bits", m.ResultBits != 0 && !window},
		{"align_bits", m.AlignBits != 0 && m.Kind != KindAligned},
	} {
		if p.bad {
			return p.name
		}
	}
	return ""
}

// known refuses a model with a word or number outside the space.
func (m *Model) known() error {
	_, last := finals[m.Final]
	in := func(v string, known ...string) bool {
		for _, k := range known {
			if v == k {
				return true
			}
		}
		return false
	}
	switch {
	case !in(string(m.Kind), "exact", "window", "aligned", "fold", "tree"):
		return fmt.Errorf("unknown kind %.20q", m.Kind)
	case !in(string(m.Acc), "", "same", "f16", "f32"):
		return fmt.Errorf("unknown acc %.20q", m.Acc)
	case !in(string(m.Step), "", "rne", "rz"):
		return fmt.Errorf("unknown step %.20q", m.Step)
	case !last:
		return fmt.Errorf("unknown final %.20q", m.Final)
	case m.Order != "" && !validOrder(m.Order):
		return fmt.Errorf("unknown order %.20q", m.Order)
	case !in(string(m.Overflow), "", "ieee", "maxfinite", "nan"):
		return fmt.Errorf("unknown overflow %.20q", m.Overflow)
	case !in(string(m.MinMaxZero), "", "ordered", "either"):
		return fmt.Errorf("unknown minmax_zero %.20q", m.MinMaxZero)
	case !in(string(m.AccEffect), "", "none", "selects"):
		return fmt.Errorf("unknown acc_effect %.20q", m.AccEffect)
	}
	for _, n := range []int{m.Granule, m.TermBits, m.ResultBits, m.AlignBits} {
		if n < 0 || n > 2200 {
			return fmt.Errorf("%d bits are outside of every format", n)
		}
	}
	return nil
}
