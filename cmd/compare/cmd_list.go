package main

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"example.com/tandem/api"
	"example.com/tandem/cmd/compare/internal/term"
)

// listCmd shows what there is.
type listCmd struct{ outputFlags }

// listing is the JSON form, schema tandem.list/1.
type listing struct {
	Schema          string           `json:"schema"`
	Implementations []implementation `json:"implementations"`
}

type implementation struct {
	Spec        string                  `json:"spec"`
	Summary     string                  `json:"summary"`
	Available   bool                    `json:"available"`
	WhyNot      string                  `json:"why_not,omitempty"`
	Collectives []string                `json:"collectives"`
	DTypes      []string                `json:"dtypes"`
	Contract    api.Contract            `json:"contract"`
	Promises    []api.Check             `json:"promises"`
	Evidence    map[string]api.Evidence `json:"evidence"`
	Params      []param                 `json:"params"`
}

type param struct {
	Name    string `json:"name"`
	Default string `json:"default"`
	Values  string `json:"values"`
	Help    string `json:"help"`
}

func (a *app) listing() listing {
	l := listing{Schema: "tandem.list/1", Implementations: []implementation{}}
	for _, b := range a.backends {
		for _, i := range b.Implementations() {
			l.Implementations = append(l.Implementations, listed(b.Name(), i))
		}
	}
	return l
}

func listed(backend string, i api.Implementation) implementation {
	out := implementation{
		Spec:    api.Spec{Backend: backend, Implementation: i.Name, Version: i.Version}.String(),
		Summary: i.Summary, Available: i.Unavailable == "", WhyNot: i.Unavailable, Contract: i.Contract,
		Collectives: []string{}, DTypes: []string{}, Promises: append([]api.Check{}, i.Promises...),
		Evidence: i.Evidence, Params: []param{},
	}
	if out.Evidence == nil {
		out.Evidence = map[string]api.Evidence{}
	}
	for _, c := range i.Collectives {
		out.Collectives = append(out.Collectives, c.Name())
	}
	for _, d := range i.DTypes {
		out.DTypes = append(out.DTypes, d.String())
	}
	for _, p := range i.Params {
		out.Params = append(out.Params, param(p))
	}
	return out
}

func (c *listCmd) do(a *app) (int, error) {
	if err := c.check(); err != nil {
		return 0, err
	}
	l := a.listing()
	return exitHolds, a.emit(&c.outputFlags, func(s term.Style) string { return listText(l, s) }, l)
}

// listText tells of each version, and of the parameters of a family once.
func listText(l listing, s term.Style) string {
	var b strings.Builder
	for n := 0; n < len(l.Implementations); {
		end := n + 1
		for end < len(l.Implementations) && family(l.Implementations[end]) == family(l.Implementations[n]) {
			end++
		}
		if n > 0 {
			b.WriteString("\n")
		}
		for _, i := range l.Implementations[n:end] {
			b.WriteString(implementationText(i, s))
		}
		b.WriteString(paramsText(l.Implementations[n:end]))
		n = end
	}
	return b.String()
}

// family is the spec without its version.
func family(i implementation) string {
	name, _, _ := strings.Cut(i.Spec, "@")
	return name
}

func implementationText(i implementation, s term.Style) string {
	text := s.Bold(i.Spec) + "  " + i.Summary + "\n"
	if !i.Available {
		text += s.Red("  not on this machine: "+i.WhyNot) + "\n"
	}
	t := term.Table{Indent: "  "}
	t.Row("collectives", strings.Join(i.Collectives, ", "))
	t.Row("dtypes", strings.Join(i.DTypes, ", "))
	t.Row("values", contractWord(i.Contract)+"; promises "+cmp.Or(joinChecks(i.Promises), "nothing"))
	t.Row("evidence", evidenceList(i.Evidence))
	return text + t.String()
}

// paramsText lists the parameters of a family's versions, and says of those
// that not all have which do.
func paramsText(versions []implementation) string {
	t := term.Table{Indent: "    "}
	var order []param
	has := map[string][]string{} // parameter -> versions
	for _, i := range versions {
		_, version, _ := strings.Cut(i.Spec, "@")
		for _, p := range i.Params {
			if has[p.Name] == nil {
				order = append(order, p)
			}
			has[p.Name] = append(has[p.Name], version)
		}
	}
	if len(order) == 0 {
		return ""
	}
	for _, p := range order {
		text := p.Help + ": " + p.Values + ", default " + p.Default
		if len(has[p.Name]) < len(versions) {
			text += " (" + strings.Join(has[p.Name], ", ") + " only)"
		}
		t.Row(p.Name, text)
	}
	return "  parameters of " + family(versions[0]) + "\n" + t.String()
}

func contractWord(c api.Contract) string {
	if c == api.Faithful {
		return "exact, or faithful where summed in the switch"
	}
	return c.String()
}

func joinChecks(checks []api.Check) string {
	var names []string
	for _, c := range checks {
		names = append(names, string(c))
	}
	return strings.Join(names, ", ")
}

// evidenceList groups algorithms by how they are known.
func evidenceList(evidence map[string]api.Evidence) string {
	by := map[api.Evidence][]string{}
	for _, name := range slices.Sorted(maps.Keys(evidence)) {
		by[evidence[name]] = append(by[evidence[name]], name)
	}
	var parts []string
	for _, e := range []api.Evidence{api.Recorded, api.Reported, api.FromSource, api.Reconstructed, api.Assumed} {
		if names := by[e]; len(names) > 0 {
			parts = append(parts, fmt.Sprintf("%s: %s", e, strings.Join(names, ", ")))
		}
	}
	return cmp.Or(strings.Join(parts, "; "), "none")
}
