package main

import (
	"errors"

	"example.com/tandem/api"
	"example.com/tandem/cmd/compare/internal/sweep"
)

// mergeCmd joins the shards of a sweep.
type mergeCmd struct {
	Files []string `arg:"" name:"FILE" help:"Results of all shards, as compare sweep --format json -o FILE writes them."`
	outputFlags
}

func (c *mergeCmd) do(a *app) (int, error) {
	if err := c.check(); err != nil {
		return 0, err
	}
	if c.Output == "" {
		return 0, errors.New("-o FILE is missing: merge writes the joined result there, as -o all.json")
	}
	var parts []sweep.Named
	for _, name := range c.Files {
		p, err := readResult(name)
		if err != nil {
			return 0, err
		}
		parts = append(parts, p)
	}
	res, err := sweep.Merge(parts)
	if err != nil {
		return 0, err
	}
	return res.Code(), a.emit(&c.outputFlags, res.Text, res)
}

func readResult(name string) (sweep.Named, error) {
	f, err := api.OpenFile(name)
	if err != nil {
		return sweep.Named{}, &api.InvalidError{Field: "file", Value: name, Reason: "it cannot be read", Hint: "give files written by compare sweep --format json -o FILE"}
	}
	defer f.Close()
	return sweep.ReadResult(name, f)
}
