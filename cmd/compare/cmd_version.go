package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"example.com/tandem/cmd/compare/internal/term"
)

// versionCmd says what was built from what.
type versionCmd struct{ outputFlags }

// versionInfo is the JSON form, schema tandem.version/1.
type versionInfo struct {
	Schema   string `json:"schema"`
	Module   string `json:"module"`
	Version  string `json:"version"`
	Commit   string `json:"commit"`   // "" where it was not recorded
	Modified bool   `json:"modified"` // the tree had changes that were not committed
	Go       string `json:"go"`
	Platform string `json:"platform"`
	Tags     string `json:"tags"` // build tags, separated by commas
}

func currentVersion() versionInfo {
	v := versionInfo{Schema: "tandem.version/1", Version: "unknown", Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return v
	}
	v.Module, v.Version = info.Main.Path, info.Main.Version
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			v.Commit = s.Value
		case "vcs.modified":
			v.Modified = s.Value == "true"
		case "-tags":
			v.Tags = s.Value
		}
	}
	return v
}

func (c *versionCmd) do(a *app) (int, error) {
	if err := c.check(); err != nil {
		return 0, err
	}
	v := currentVersion()
	return exitHolds, a.emit(&c.outputFlags, func(term.Style) string {
		commit := v.Commit
		switch {
		case commit == "":
			commit = "not recorded"
		case v.Modified:
			commit += " and changes that were not committed"
		}
		tags := v.Tags
		if tags == "" {
			tags = "none"
		}
		return fmt.Sprintf("compare %s of %s\ncommit %s\n%s, %s, build tags: %s\n", v.Version, v.Module, commit, v.Go, v.Platform, tags)
	}, v)
}
