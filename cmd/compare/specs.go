package main

import (
	"os"

	"example.com/tandem/api"
	"example.com/tandem/conformance/vectors"
)

// auto is the version that stands for the other side's.
const auto = "auto"

// specs reads the specs of two sides, of which the right one may be "", and
// gives @auto its meaning.
func (a *app) specs(left, right string) (l, r api.Spec, err error) {
	if l, err = api.ParseSpec(left); err != nil {
		return l, r, err
	}
	if right != "" {
		if r, err = api.ParseSpec(right); err != nil {
			return l, r, err
		}
	}
	lAuto, rAuto := l.Version == auto, r.Version == auto
	if lAuto && (rAuto || right == "") {
		return l, r, &api.InvalidError{Field: "spec", Value: left, Reason: "there is no other side whose version it could take", Hint: "name a version; compare list shows them"}
	}
	if lAuto {
		l.Version, err = a.versionFor(l, r)
	}
	if rAuto {
		r.Version, err = a.versionFor(r, l)
	}
	return l, r, err
}

// versionFor is the version of the library that the other side runs or holds.
func (a *app) versionFor(spec, other api.Spec) (string, error) {
	fail := func(reason string) (string, error) {
		return "", &api.InvalidError{Field: "spec", Value: spec.String(), Reason: "auto: " + reason, Hint: "name a version; compare list shows them"}
	}
	name, version := other.Implementation, other.Version
	switch {
	case other.Backend == "file":
		profile, err := fileProfile(other.Path)
		if err != nil {
			return "", err
		}
		of, err := api.ParseSpec("sim:" + profile)
		if err != nil || profile == "" {
			return fail(other.String() + " does not say which library it comes from")
		}
		name, version = of.Implementation, of.Version
	case version == "":
		b, err := a.backend(other)
		if err != nil {
			return "", err
		}
		for _, i := range b.Implementations() {
			if i.Name == name && version == "" {
				version = i.Version
			}
		}
	}
	switch {
	case name != spec.Implementation:
		return fail("the other side is " + name + ", not " + spec.Implementation)
	case version == "":
		return fail("the version of " + other.String() + " is not known")
	}
	return version, nil
}

// fileProfile is the profile in the header of a recording; "" of a directory of
// dumps, which has none.
func fileProfile(path string) (string, error) {
	switch info, err := os.Stat(path); {
	case err != nil: // said below
	case info.IsDir():
		return "", nil
	case !info.Mode().IsRegular():
		return "", &api.InvalidError{Field: "file", Value: path, Reason: "a pipe is read once, and the version auto is in its first line", Hint: "write the version, or name a file"}
	}
	f, err := vectors.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	return f.Header.Profile, nil
}
