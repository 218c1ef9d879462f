package inputs

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	"example.com/tandem/api"
)

// inputJSON has the field names of vector files.
type inputJSON struct {
	Gen    string    `json:"gen"`
	Lo     *float64  `json:"lo,omitempty"`
	Hi     *float64  `json:"hi,omitempty"`
	Values []pattern `json:"values,omitempty"`
	Dir    string    `json:"dir,omitempty"`
	Seed   *uint64   `json:"seed,omitempty"`
}

// pattern is written in hexadecimal, as a string: JSON numbers lose bits above
// 2^53 in many readers. It is read as a number too.
type pattern uint64

func (p pattern) MarshalText() ([]byte, error) { return fmt.Appendf(nil, "0x%x", uint64(p)), nil }

func (p *pattern) UnmarshalJSON(b []byte) error {
	v, err := strconv.ParseUint(string(bytes.Trim(b, `"`)), 0, 64)
	if err != nil {
		return fmt.Errorf("%.40s is no bit pattern", b)
	}
	*p = pattern(v)
	return nil
}

// MarshalJSON writes the "input" object of a vector row.
func (in Input) MarshalJSON() ([]byte, error) {
	j := inputJSON{Gen: in.Kind.String(), Dir: in.Dir}
	if in.Kind.seeded() {
		j.Seed = &in.Seed
	}
	if in.Kind == Uniform {
		j.Lo, j.Hi = &in.Lo, &in.Hi
	}
	for _, v := range in.Values {
		j.Values = append(j.Values, pattern(v))
	}
	return json.Marshal(j)
}

// UnmarshalJSON reads what MarshalJSON writes. A "file" is refused: a recording
// must not name a directory of the reader's machine.
func (in *Input) UnmarshalJSON(b []byte) error {
	var j inputJSON
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&j); err != nil {
		return err
	}
	k := Kind(max(0, slices.Index(kindNames, j.Gen)))
	bad := func(reason string) error {
		return &api.InvalidError{Field: "input", Value: j.Gen, Reason: reason, Hint: "known generators are normal, finite, bits, uniform, order_free, ones and values"}
	}
	switch {
	case k == Auto:
		return bad("unknown generator")
	case k == Files || j.Dir != "":
		return bad("a recording cannot name files")
	case k.seeded() != (j.Seed != nil):
		return bad("the seed is missing, or given where there is none")
	case (k == Uniform) != (j.Lo != nil && j.Hi != nil) || (k != Uniform && (j.Lo != nil || j.Hi != nil)):
		return bad("lo and hi belong to uniform, and both must be there")
	case (k == Values) != (len(j.Values) > 0):
		return bad("values belong to gen values, one a rank")
	}
	*in = Input{Kind: k}
	if j.Seed != nil {
		in.Seed = *j.Seed
	}
	if k == Uniform {
		in.Lo, in.Hi = *j.Lo, *j.Hi
	}
	for _, v := range j.Values {
		in.Values = append(in.Values, uint64(v))
	}
	return nil
}
