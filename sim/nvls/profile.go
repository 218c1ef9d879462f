package nvls

import (
	"encoding/json"
	"fmt"
	"io"

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
}

// ProfileCell is the arithmetic of one operation on one type.
type ProfileCell struct {
	DType string `json:"dtype"`
	Op    string `json:"op"`
	Ranks int    `json:"ranks"`
	// Exact says that every probe agreed with the model bit for bit, so that it
	// may be held to.
	Exact   bool   `json:"exact"`
	Verdict string `json:"verdict"`
	Model   Model  `json:"model"`
}

// Cell is the model of op on d, if the profile has one that is exact.
func (p *Profile) Cell(d num.DType, op num.Op) (Model, bool) {
	for _, c := range p.Cells {
		if c.Exact && c.DType == d.String() && c.Op == op.String() {
			m := c.Model
			m.Fitted, m.Unordered = true, false
			return m, true
		}
	}
	return Model{}, false
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
	if err := json.Unmarshal(text, &p); err != nil {
		return nil, fmt.Errorf("it is no profile: %v", err)
	}
	if p.Schema != ProfileSchema {
		return nil, fmt.Errorf("its schema is %.40q, not %q", p.Schema, ProfileSchema)
	}
	for i, c := range p.Cells {
		d, err := num.ParseDType(c.DType)
		if err != nil {
			return nil, fmt.Errorf("cell %d: %v", i, err)
		}
		op, err := num.ParseOp(c.Op)
		if err != nil || !op.ValidFor(d) || op == num.Prod || op == num.Avg {
			return nil, fmt.Errorf("cell %d: a switch has no %.20q of %v", i, c.Op, d)
		}
		if err := c.Model.known(); err != nil {
			return nil, fmt.Errorf("cell %d: %v", i, err)
		}
		if err := c.Model.valid(d); err != nil {
			return nil, fmt.Errorf("cell %d: %v", i, err)
		}
	}
	return &p, nil
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
