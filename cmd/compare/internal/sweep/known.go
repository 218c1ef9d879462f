package sweep

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"example.com/tandem/api"
)

// Known is a list of accepted divergences.
type Known map[Kind]int

// Kind is what divergences are counted by.
type Kind struct {
	Class string
	Check api.Check
	Cause api.Cause
}

// KnownReport holds a result against a list.
type KnownReport struct {
	Listed int `json:"listed"` // calls that diverged as listed
	// Unlisted and Missing are in words: kinds with more, and with fewer calls
	// than the list has.
	Unlisted []string `json:"unlisted"`
	Missing  []string `json:"missing"`
}

// Holds reports whether exactly the listed divergences occurred.
func (k *KnownReport) Holds() bool { return len(k.Unlisted)+len(k.Missing) == 0 }

const knownHeader = "# tandem.known/1"

// KnownOf are the divergences of a result.
func KnownOf(r *Result) Known {
	out := Known{}
	for _, f := range r.Failures {
		out[Kind{f.Class, f.Check, f.Cause}] += f.Calls
	}
	return out
}

// String is the kind as a line of the list has it.
func (k Kind) String() string {
	return fmt.Sprintf("%s\t%s\t%s", k.Check, cmp.Or(string(k.Cause), "-"), k.Class)
}

// kinds are in the order of the file.
func (k Known) kinds() []Kind {
	var out []Kind
	for kind := range k {
		out = append(out, kind)
	}
	slices.SortFunc(out, func(a, b Kind) int { return strings.Compare(a.String(), b.String()) })
	return out
}

// Write writes the list: calls, check, cause and class, between tabs.
func (k Known) Write(w io.Writer, left, right string) error {
	b := bufio.NewWriter(w)
	fmt.Fprintf(b, "%s accepted divergences of %s from %s\n# calls\tcheck\tcause\tclass of calls\n", knownHeader, right, left)
	for _, kind := range k.kinds() {
		fmt.Fprintf(b, "%d\t%s\n", k[kind], kind)
	}
	return b.Flush()
}

// ReadKnown reads what Write writes. Lines that are empty or begin with # are
// passed over, but for the first, which names the format.
func ReadKnown(name string, r io.Reader) (Known, error) {
	bad := func(n int, reason string) (Known, error) {
		return nil, &api.InvalidError{Field: "known", Value: name, Reason: fmt.Sprintf("line %d: %s", n, reason), Hint: "--write-known writes the file: calls, check, cause and class, between tabs"}
	}
	in := bufio.NewScanner(io.LimitReader(r, 1<<26))
	in.Buffer(nil, 1<<16)
	out := Known{}
	n := 0
	for in.Scan() {
		n++
		line := strings.TrimSuffix(in.Text(), "\r")
		if n == 1 && !strings.HasPrefix(line, knownHeader+" ") {
			return bad(n, "it does not begin with "+knownHeader)
		}
		if line == "" || line[0] == '#' {
			continue
		}
		f := strings.Split(line, "\t")
		if len(f) != 4 {
			return bad(n, fmt.Sprintf("%d fields, not 4", len(f)))
		}
		calls, err := strconv.Atoi(f[0])
		if err != nil || calls < 1 {
			return bad(n, fmt.Sprintf("%.40q is no number of calls", f[0]))
		}
		kind := Kind{Class: f[3], Check: api.Check(f[1]), Cause: api.Cause(strings.TrimPrefix(f[2], "-"))}
		if !slices.Contains(api.Checks(), kind.Check) {
			return bad(n, fmt.Sprintf("unknown check %.40q", f[1]))
		}
		if out[kind] > 0 {
			return bad(n, "listed twice")
		}
		out[kind] = calls
	}
	if err := in.Err(); err != nil {
		return bad(n+1, err.Error())
	}
	if n == 0 {
		return bad(1, "the file is empty")
	}
	return out, nil
}

// Against holds a result against the list.
func (k Known) Against(r *Result) *KnownReport {
	rep := &KnownReport{Unlisted: []string{}, Missing: []string{}}
	got := KnownOf(r)
	for _, kind := range got.kinds() {
		rep.Listed += min(got[kind], k[kind])
		if more := got[kind] - k[kind]; more > 0 {
			rep.Unlisted = append(rep.Unlisted, fmt.Sprintf("%d calls: %s", more, words(kind)))
		}
	}
	for _, kind := range k.kinds() {
		if fewer := k[kind] - got[kind]; fewer > 0 {
			rep.Missing = append(rep.Missing, fmt.Sprintf("%d calls: %s", fewer, words(kind)))
		}
	}
	return rep
}

// words are a kind in a sentence.
func words(k Kind) string { return strings.Join(strings.Split(k.String(), "\t"), ", ") }
