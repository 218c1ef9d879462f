package vectors

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"

	"example.com/tandem/api"
	"example.com/tandem/conformance/inputs"
)

// rowV1 has the fields of version 1.
type rowV1 struct {
	Collective string        `json:"collective"`
	Scope      string        `json:"scope"`
	DType      string        `json:"dtype"`
	Op         string        `json:"op,omitempty"`
	Ranks      int           `json:"ranks"`
	Count      *int64        `json:"count,omitempty"`
	SrcOffset  api.Offsets   `json:"src_offset"`
	DstOffset  api.Offsets   `json:"dst_offset"`
	InPlace    api.InPlace   `json:"in_place"`
	Input      *inputs.Input `json:"input"`
	Hash       []hash        `json:"out_fnv1a64"`
	Hex        []*string     `json:"out_hex,omitempty"`
}

// rowV2 has those that version 2 adds.
type rowV2 struct {
	rowV1
	Blocks    [][]hash   `json:"block_fnv1a64,omitempty"`
	Root      int        `json:"root"`
	Team      string     `json:"team"`
	Lanes     []string   `json:"lanes,omitempty"`
	Mode      string     `json:"mode,omitempty"`
	Poison    *byte      `json:"poison,omitempty"`
	Unwritten []*int64   `json:"unwritten,omitempty"`
	GuardHits []int64    `json:"guard_hits,omitempty"`
	Fault     *api.Fault `json:"fault"`
	MS        float64    `json:"ms,omitempty"`
}

// hash is 16 hexadecimal digits.
type hash uint64

func (h hash) MarshalText() ([]byte, error) { return fmt.Appendf(nil, "%016x", uint64(h)), nil }

func (h *hash) UnmarshalText(b []byte) error {
	v, err := strconv.ParseUint(string(b), 16, 64)
	if err != nil || len(b) != 16 {
		return fmt.Errorf("%.40q is no hash of 16 hexadecimal digits", b)
	}
	*h = hash(v)
	return nil
}

// decodeRow reads one line of a file of the given version.
func decodeRow(line []byte, version int) (*Row, error) {
	var j rowV2
	var err error
	if version == 1 {
		err = strict(line, &j.rowV1)
		if len(j.SrcOffset) > 1 || len(j.DstOffset) > 1 {
			return nil, errors.New("offsets per rank belong to version 2")
		}
	} else {
		err = strict(line, &j)
	}
	if err != nil {
		return nil, err
	}
	row, err := j.row()
	if err != nil {
		return nil, err
	}
	return row, row.check()
}

// strict decodes one JSON object and nothing else.
func strict(line []byte, v any) error {
	dec := json.NewDecoder(bytes.NewReader(line))
	dec.DisallowUnknownFields()
	if err := dec.Decode(v); err != nil {
		return plainly(err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return errors.New("something follows the object")
	}
	return nil
}

func (j *rowV2) row() (*Row, error) {
	call, err := j.call()
	if err != nil {
		return nil, err
	}
	if j.Input == nil {
		return nil, &api.InvalidError{Field: "input", Reason: "missing"}
	}
	r := &Row{Call: call, Input: *j.Input, Poison: DefaultPoison, Unwritten: j.Unwritten, GuardHits: j.GuardHits, Fault: j.Fault, MS: j.MS}
	if j.Poison != nil {
		r.Poison = *j.Poison
	}
	r.Hash = fromHashes(j.Hash)
	for _, b := range j.Blocks {
		r.Blocks = append(r.Blocks, fromHashes(b))
	}
	for rank, text := range j.Hex {
		var p []byte
		if text != nil {
			if p, err = hex.DecodeString(*text); err != nil {
				return nil, &api.InvalidError{Field: "out_hex", Value: fmt.Sprintf("rank %d", rank), Reason: err.Error()}
			}
		}
		r.Output = append(r.Output, p)
	}
	return r, nil
}

func (j *rowV2) call() (call api.Call, err error) {
	call = api.Call{Ranks: j.Ranks, SrcOffset: j.SrcOffset, DstOffset: j.DstOffset, InPlace: j.InPlace, Root: j.Root, Mode: j.Mode}
	if call.Collective, err = api.ParseCollective(j.Collective); err != nil {
		return call, err
	}
	if call.Scope, err = api.ParseScope(j.Scope); err != nil {
		return call, err
	}
	if call.DType, err = api.ParseDType(j.DType); err != nil {
		return call, err
	}
	if j.Op != "" {
		if call.Op, err = api.ParseOp(j.Op); err != nil {
			return call, err
		}
	}
	if j.Team != "" {
		if call.Team, err = api.ParseTeamKind(j.Team); err != nil {
			return call, err
		}
	}
	if len(j.Lanes) > api.MaxLanes {
		return call, wrongLength("lanes", len(j.Lanes), api.MaxLanes)
	}
	for _, text := range j.Lanes {
		l, err := api.ParseLane(text)
		if err != nil {
			return call, err
		}
		call.Many = append(call.Many, l)
	}
	switch {
	case j.Count != nil:
		call.Count = *j.Count
	case len(j.Lanes) == 0:
		return call, &api.InvalidError{Field: "count", Reason: "missing"}
	}
	return call, nil
}

// encodeRow is one line, without its end.
func encodeRow(r *Row) ([]byte, error) {
	c := &r.Call
	j := rowV2{
		rowV1: rowV1{
			Collective: c.Collective.Name(), Scope: c.Scope.String(), DType: c.DType.String(), Op: c.Op.String(),
			Ranks: c.Ranks, SrcOffset: c.SrcOffset, DstOffset: c.DstOffset, InPlace: c.InPlace, Input: &r.Input,
			Hash: toHashes(r.Hash),
		},
		Root: c.Root, Team: c.Team.String(), Mode: c.Mode, Poison: &r.Poison,
		Unwritten: r.Unwritten, GuardHits: r.GuardHits, Fault: r.Fault, MS: r.MS,
	}
	if len(c.Many) > 0 {
		j.Lanes = laneTexts(c)
	} else {
		j.Count = &c.Count
	}
	for _, b := range r.Blocks {
		j.Blocks = append(j.Blocks, toHashes(b))
	}
	for _, p := range r.Output {
		var text *string
		if p != nil {
			s := hex.EncodeToString(p)
			text = &s
		}
		j.Hex = append(j.Hex, text)
	}
	return json.Marshal(&j)
}

func laneTexts(c *api.Call) []string {
	out := make([]string, len(c.Many))
	for i := range c.Many {
		l := c.Lane(i)
		out[i] = fmt.Sprintf("%s:%d", l.DType, l.Count)
	}
	return out
}

func toHashes(in []uint64) []hash {
	if in == nil {
		return nil
	}
	out := make([]hash, len(in))
	for i, h := range in {
		out[i] = hash(h)
	}
	return out
}

func fromHashes(in []hash) []uint64 {
	if in == nil {
		return nil
	}
	out := make([]uint64, len(in))
	for i, h := range in {
		out[i] = uint64(h)
	}
	return out
}
