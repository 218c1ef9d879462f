package sweep

import (
	"bytes"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"slices"

	"example.com/tandem/api"
	"example.com/tandem/conformance/matrix"
)

// Schema names the JSON form of a Result.
const Schema = "tandem.sweep/1"

// Result is what a sweep, or a shard of one, came to.
type Result struct {
	Schema string `json:"schema"`
	Identity
	// TooLarge counts cases left out because thresholds ask for more memory
	// than the matrix is given.
	TooLarge int       `json:"too_large"`
	Calls    int       `json:"calls"`
	Agree    int       `json:"agree"`
	Diverge  int       `json:"diverge"`
	Refused  int       `json:"refused"`
	Seconds  float64   `json:"seconds"`
	Failures []Failure `json:"failures"`
	Refusals []Refusal `json:"refusals"`
	// Known is there where a list of accepted divergences was given.
	Known *KnownReport `json:"known,omitempty"`
}

// Identity says which calls a sweep makes: what has the same Identity, shards
// apart, can be joined.
type Identity struct {
	Left   string `json:"left"`
	Right  string `json:"right"`
	Matrix string `json:"matrix"` // hash of the cases and of what is asked of them
	Cases  int    `json:"cases"`  // of all shards
	Shard  Shard  `json:"shard"`
}

// Failure is a kind of divergence with the report of its smallest call.
type Failure struct {
	FailureHead
	// Report is the run report, whose fields follow those of the head.
	Report json.RawMessage
}

// FailureHead is what a sweep says of a kind of divergence.
type FailureHead struct {
	Class string    `json:"class"`
	Check api.Check `json:"check"`
	// Cause is the class of most elements; "" for checks that know no classes.
	Cause api.Cause `json:"cause"`
	Calls int       `json:"calls"`
	Case  int       `json:"case"` // of the first one
	// Found and Again are command lines: of the first one, and of the smallest.
	Found  string `json:"found"`
	Again  string `json:"again"`
	Detail string `json:"detail"`
}

// Refusal is one reason for which calls were not compared.
type Refusal struct {
	Reason string `json:"reason"`
	Calls  int    `json:"calls"`
	Case   int    `json:"case"`
	First  string `json:"first"`
}

// New makes the result of a run. The command lines of cases are made by again.
func New(id Identity, tooLarge int, res *matrix.Result, again func(matrix.Case, api.Check) string) (*Result, error) {
	out := &Result{
		Schema: Schema, Identity: id, TooLarge: tooLarge,
		Calls: res.Calls, Agree: res.Agree, Diverge: res.Diverge, Refused: res.Refused,
		Failures: []Failure{}, Refusals: []Refusal{},
	}
	for _, f := range res.Failures {
		report, err := json.Marshal(f.Report)
		if err != nil {
			return nil, fmt.Errorf("cannot write a report as JSON: %w", err)
		}
		out.Failures = append(out.Failures, Failure{FailureHead{
			Class: f.Class, Check: f.Check, Cause: f.Cause, Calls: f.Calls, Case: f.Case,
			Found: again(f.First, f.Check), Again: again(f.Small, f.Check), Detail: f.Detail,
		}, report})
	}
	for _, r := range res.Refusals {
		out.Refusals = append(out.Refusals, Refusal{r.Reason, r.Calls, r.Case, r.First.String()})
	}
	return out, nil
}

// Code is the exit code: 1 if any call diverged that is not known, 2 if nothing
// was compared.
func (r *Result) Code() int {
	switch {
	case r.Agree+r.Diverge == 0:
		return 2
	case r.Known != nil && r.Known.Holds() || r.Known == nil && r.Diverge == 0:
		return 0
	}
	return 1
}

// MatrixHash identifies cases and what is asked of them.
func MatrixHash(cases []matrix.Case, asked ...string) string {
	h := fnv.New64a()
	for _, a := range asked {
		fmt.Fprintln(h, a)
	}
	for _, c := range cases {
		fmt.Fprintln(h, c)
	}
	return fmt.Sprintf("%016x", h.Sum64())
}

// MarshalJSON writes the head, and after it the fields of the report.
func (f Failure) MarshalJSON() ([]byte, error) {
	head, err := json.Marshal(f.FailureHead)
	if err != nil {
		return nil, err
	}
	rest := bytes.TrimPrefix(bytes.TrimSpace(f.Report), []byte("{"))
	return fmt.Appendf(nil, "%s,%s", bytes.TrimSuffix(head, []byte("}")), rest), nil
}

// UnmarshalJSON reads what MarshalJSON writes, and keeps the order of fields.
func (f *Failure) UnmarshalJSON(b []byte) error {
	if err := json.Unmarshal(b, &f.FailureHead); err != nil {
		return err
	}
	head, err := json.Marshal(f.FailureHead)
	if err != nil {
		return err
	}
	var own map[string]json.RawMessage
	if err := json.Unmarshal(head, &own); err != nil {
		return err
	}
	dec := json.NewDecoder(bytes.NewReader(b))
	if _, err := dec.Token(); err != nil {
		return err
	}
	var rest []byte
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			return err
		}
		var value json.RawMessage
		if err := dec.Decode(&value); err != nil {
			return err
		}
		if _, ok := own[fmt.Sprint(key)]; !ok {
			rest = fmt.Appendf(rest, ",%q:%s", key, value)
		}
	}
	if len(rest) == 0 {
		return fmt.Errorf("a failure without a report")
	}
	f.Report = fmt.Appendf(nil, "{%s}", rest[1:])
	return nil
}

// sortKinds puts failures and refusals in the order in which their first cases
// stand in the matrix.
func (r *Result) sortKinds() {
	slices.SortFunc(r.Failures, func(a, b Failure) int { return a.Case - b.Case })
	slices.SortFunc(r.Refusals, func(a, b Refusal) int { return a.Case - b.Case })
}
