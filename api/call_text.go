package api

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

// callJSON has the field names of vector files and reports.
type callJSON struct {
	Collective string   `json:"collective"`
	Scope      string   `json:"scope"`
	DType      string   `json:"dtype"`
	Op         string   `json:"op,omitempty"`
	Ranks      int      `json:"ranks"`
	Count      int64    `json:"count"`
	Lanes      []string `json:"lanes,omitempty"`
	SrcOffset  Offsets  `json:"src_offset"`
	DstOffset  Offsets  `json:"dst_offset"`
	InPlace    InPlace  `json:"in_place"`
	Root       int      `json:"root"`
	Team       string   `json:"team"`
	Mode       string   `json:"mode,omitempty"`
}

// MarshalJSON writes the fields of a vector row, defaults included.
func (c Call) MarshalJSON() ([]byte, error) {
	j := callJSON{
		Scope: c.Scope.String(), DType: c.DType.String(), Op: c.Op.String(), Ranks: c.Ranks,
		Count: c.Count, SrcOffset: c.SrcOffset, DstOffset: c.DstOffset, InPlace: c.InPlace,
		Root: c.Root, Team: c.Team.String(), Mode: c.Mode, Lanes: c.laneTexts(),
	}
	if c.Collective != nil {
		j.Collective = c.Collective.Name()
	}
	return json.Marshal(j)
}

func (c *Call) laneTexts() []string {
	var out []string
	for _, l := range c.Many {
		if l.DType == 0 || l.DType == c.DType {
			out = append(out, strconv.FormatInt(l.Count, 10))
		} else {
			out = append(out, fmt.Sprintf("%s:%d", l.DType, l.Count))
		}
	}
	return out
}

// ParseLane reads count or dtype:count.
func ParseLane(text string) (LaneShape, error) {
	bad := &InvalidError{Field: "lanes", Value: text, Reason: "not a lane", Hint: "write count or dtype:count, as 1024 or f32:7"}
	var l LaneShape
	name, count, ok := strings.Cut(text, ":")
	if !ok {
		name, count = "", name
	} else {
		var err error
		if l.DType, err = parseDType(name); err != nil {
			return l, err
		}
	}
	n, err := strconv.ParseInt(count, 10, 64)
	if err != nil {
		return l, bad
	}
	l.Count = n
	return l, nil
}

func parseDType(name string) (DType, error) {
	for _, d := range DTypes() {
		if d.String() == name {
			return d, nil
		}
	}
	return 0, &InvalidError{Field: "dtype", Value: name, Reason: "unknown", Hint: fmt.Sprintf("known are %v", DTypes())}
}

// ParseDType returns the element type of that name.
func ParseDType(name string) (DType, error) { return parseDType(name) }

// ParseOp returns the operation of that name.
func ParseOp(name string) (Op, error) {
	for _, o := range Ops() {
		if o.String() == name {
			return o, nil
		}
	}
	return 0, &InvalidError{Field: "op", Value: name, Reason: "unknown", Hint: fmt.Sprintf("known are %v", Ops())}
}

// String is the call as flags of compare; flags at their defaults are left
// out, but for those that name the call.
func (c Call) String() string {
	var b strings.Builder
	add := func(flag string, value any) { fmt.Fprintf(&b, " --%s %v", flag, value) }
	if c.Collective != nil {
		add("collective", c.Collective.Name())
	}
	add("dtype", c.DType)
	if c.Op != NoOp {
		add("op", c.Op)
	}
	add("ranks", c.Ranks)
	if len(c.Many) > 0 {
		add("lanes", strings.Join(c.laneTexts(), ","))
	} else {
		add("count", c.Count)
	}
	for _, o := range []struct {
		flag string
		off  Offsets
	}{{"src-offset", c.SrcOffset}, {"dst-offset", c.DstOffset}} {
		if text := o.off.String(); text != "0" {
			add(o.flag, text)
		}
	}
	switch c.InPlace {
	case InPlaceOwn:
		b.WriteString(" --in-place")
	case InPlaceStart:
		b.WriteString(" --in-place=start")
	}
	if c.Root != 0 {
		add("root", c.Root)
	}
	if c.Scope != OnStream {
		add("scope", c.Scope)
	}
	if c.Team != World {
		add("team", c.Team)
	}
	if c.Mode != "" {
		add("mode", c.Mode)
	}
	return strings.TrimPrefix(b.String(), " ")
}

// String is one number where all ranks agree, else a comma list.
func (o Offsets) String() string {
	if o.Uniform() {
		return strconv.FormatInt(o.At(0), 10)
	}
	parts := make([]string, len(o))
	for i, v := range o {
		parts[i] = strconv.FormatInt(v, 10)
	}
	return strings.Join(parts, ",")
}
