package api

import (
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
)

// Spec names an implementation on a backend:
// BACKEND:IMPLEMENTATION[@VERSION][?key=value&key=value], or file:PATH.
type Spec struct {
	Backend        string
	Implementation string
	Version        string            // "" where the implementation has none
	Params         map[string]string // the library's own names, lower case
	Path           string            // of file: specs, and of ptx: specs that name a file
}

// ParseSpec reads the text form of a Spec. It checks the form only; what names
// mean is for the backend to say.
func ParseSpec(text string) (Spec, error) {
	bad := func(reason string) (Spec, error) {
		return Spec{}, &InvalidError{Field: "spec", Value: text, Reason: reason, Hint: "write BACKEND:IMPLEMENTATION[@VERSION][?key=value], e.g. sim:nvshmem@pr131?nvls=off, or file:PATH"}
	}
	backend, rest, ok := strings.Cut(text, ":")
	if !ok || backend == "" || rest == "" {
		return bad("it has no backend")
	}
	s := Spec{Backend: backend}
	if backend == "file" {
		s.Path = rest
		return s, nil
	}
	name, query, hasQuery := strings.Cut(rest, "?")
	if hasQuery {
		values, err := url.ParseQuery(query)
		if err != nil {
			return bad("its parameters cannot be read: " + err.Error())
		}
		s.Params = make(map[string]string, len(values))
		for k, v := range values {
			if k == "" || len(v) != 1 {
				return bad(fmt.Sprintf("parameter %q must be given once, with a name", k))
			}
			s.Params[k] = v[0]
		}
	}
	if strings.HasSuffix(name, ".ptx") {
		s.Path = name
		return s, nil
	}
	s.Implementation, s.Version, ok = strings.Cut(name, "@")
	if s.Implementation == "" || (ok && s.Version == "") {
		return bad("it has no implementation, or an empty version")
	}
	return s, nil
}

// String is the text form, parameters in alphabetical order.
func (s Spec) String() string {
	var b strings.Builder
	b.WriteString(s.Backend + ":" + s.Path + s.Implementation)
	if s.Version != "" {
		b.WriteString("@" + s.Version)
	}
	sep := "?"
	for _, k := range slices.Sorted(maps.Keys(s.Params)) {
		b.WriteString(sep + escape(k, "=") + "=" + escape(s.Params[k], ""))
		sep = "&"
	}
	return b.String()
}

// escape writes as %XX what ParseSpec would not read back as it is, and what
// does not print.
func escape(text, also string) string {
	var b strings.Builder
	for _, c := range []byte(text) {
		if c <= ' ' || c > '~' || strings.IndexByte("%&+;"+also, c) >= 0 {
			fmt.Fprintf(&b, "%%%02X", c)
		} else {
			b.WriteByte(c)
		}
	}
	return b.String()
}

// Param is the value of a parameter, or def where the spec does not set it.
func (s Spec) Param(key, def string) string {
	if v, ok := s.Params[key]; ok {
		return v
	}
	return def
}
