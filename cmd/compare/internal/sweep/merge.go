package sweep

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"example.com/tandem/api"
)

// Named is a result and where it was read.
type Named struct {
	Name string
	*Result
}

// maxResult bounds the file of a result, in bytes.
const maxResult = 1 << 30

// ReadResult reads the JSON form of a result.
func ReadResult(name string, r io.Reader) (Named, error) {
	bad := func(reason string) (Named, error) {
		return Named{}, &api.InvalidError{Field: "file", Value: name, Reason: reason, Hint: "give files written by compare sweep --format json -o FILE"}
	}
	text, err := io.ReadAll(io.LimitReader(r, maxResult+1))
	switch {
	case err != nil:
		return bad("it cannot be read: " + err.Error())
	case len(text) > maxResult:
		return bad("it is too large")
	}
	var kind struct {
		Schema string `json:"schema"`
	}
	if err := json.Unmarshal(text, &kind); err != nil || kind.Schema != Schema {
		if err == nil && strings.HasPrefix(kind.Schema, "tandem.sweep") {
			return bad(fmt.Sprintf("it is %q, not %q", kind.Schema, Schema))
		}
		return bad("it is no result of a sweep in JSON")
	}
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.DisallowUnknownFields()
	res := &Result{}
	if err := dec.Decode(res); err != nil {
		return bad("it is damaged: " + err.Error())
	}
	if reason := res.unsound(); reason != "" {
		return bad("it is damaged: " + reason)
	}
	return Named{name, res}, nil
}

// unsound says what cannot be true of a result.
func (r *Result) unsound() string {
	if r.Cases < 0 || r.Shard.Of < 1 {
		return "it does not say which cases it is about"
	}
	diverging, refused := 0, 0
	for _, f := range r.Failures {
		if f.Calls < 1 || f.Case < 0 || f.Case >= r.Cases || !r.Shard.Has(f.Case) {
			return fmt.Sprintf("the failure of case %d is not of this shard", f.Case)
		}
		if f.Class == "" || !slices.Contains(api.Checks(), f.Check) {
			return fmt.Sprintf("the failure of case %d names no class or no check", f.Case)
		}
		diverging += f.Calls
	}
	for _, f := range r.Refusals {
		if f.Calls < 1 || f.Case < 0 || f.Case >= r.Cases || !r.Shard.Has(f.Case) {
			return fmt.Sprintf("the refusal of case %d is not of this shard", f.Case)
		}
		refused += f.Calls
	}
	switch {
	case r.Agree < 0 || r.Calls != r.Agree+r.Diverge+r.Refused || r.Diverge != diverging || r.Refused != refused:
		return "its counts do not add up"
	case r.Calls != r.Shard.Count(r.Cases):
		return fmt.Sprintf("shard %s of %d cases has %d calls, not %d", r.Shard, r.Cases, r.Shard.Count(r.Cases), r.Calls)
	}
	return ""
}

// Merge joins the shards of one sweep: each exactly once.
func Merge(parts []Named) (*Result, error) {
	bad := func(p Named, reason, hint string) (*Result, error) {
		return nil, &api.InvalidError{Field: "file", Value: p.Name, Reason: reason, Hint: hint}
	}
	first := parts[0]
	out := &Result{Schema: Schema, Identity: first.Identity, TooLarge: first.TooLarge, Failures: []Failure{}, Refusals: []Refusal{}}
	out.Shard = Whole
	by := make([]*Named, first.Shard.Of)
	for i, p := range parts {
		switch a, b := first, p; {
		case a.Left != b.Left || a.Right != b.Right:
			return bad(p, fmt.Sprintf("it compares %s with %s, and %s compares %s with %s", b.Left, b.Right, a.Name, a.Left, a.Right), "join shards of one sweep")
		case a.Matrix != b.Matrix || a.Cases != b.Cases || a.TooLarge != b.TooLarge:
			return bad(p, "its calls are not those of "+a.Name, "join shards of one sweep: the same flags, but for --shard")
		case a.Shard.Of != b.Shard.Of:
			return bad(p, fmt.Sprintf("it is shard %s, and %s is shard %s", b.Shard, a.Name, a.Shard), "join shards of one division")
		}
		if q := by[p.Shard.Index-1]; q != nil {
			return bad(p, fmt.Sprintf("it is shard %s, and so is %s", p.Shard, q.Name), "give every shard once")
		}
		by[p.Shard.Index-1] = &parts[i]
	}
	var missing []string
	for i, p := range by {
		if p == nil {
			missing = append(missing, Shard{i + 1, len(by)}.String())
		}
	}
	if n := len(missing); n > 0 {
		list := strings.Join(missing[:min(n, 8)], ", ")
		if n > 8 {
			list += fmt.Sprintf(" and %d more", n-8)
		}
		return nil, &api.InvalidError{Field: "file", Value: fmt.Sprintf("%d files", len(parts)), Reason: "shards are missing: " + list, Hint: "give every shard once"}
	}
	for _, p := range by {
		out.add(p.Result)
	}
	out.sortKinds()
	return out, nil
}

// add adds the counts of a shard. Of a kind of failure that several shards have,
// the one met first in the whole matrix is kept.
func (r *Result) add(p *Result) {
	r.Calls += p.Calls
	r.Agree += p.Agree
	r.Diverge += p.Diverge
	r.Refused += p.Refused
	r.Seconds += p.Seconds
	for _, f := range p.Failures {
		i := slices.IndexFunc(r.Failures, func(g Failure) bool { return g.Class == f.Class && g.Check == f.Check && g.Cause == f.Cause })
		if i < 0 {
			r.Failures = append(r.Failures, f)
			continue
		}
		calls := r.Failures[i].Calls + f.Calls
		if f.Case < r.Failures[i].Case {
			r.Failures[i] = f
		}
		r.Failures[i].Calls = calls
	}
	for _, f := range p.Refusals {
		i := slices.IndexFunc(r.Refusals, func(g Refusal) bool { return g.Reason == f.Reason })
		if i < 0 {
			r.Refusals = append(r.Refusals, f)
			continue
		}
		calls := r.Refusals[i].Calls + f.Calls
		if f.Case < r.Refusals[i].Case {
			r.Refusals[i] = f
		}
		r.Refusals[i].Calls = calls
	}
}
