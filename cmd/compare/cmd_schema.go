package main

import (
	_ "embed"
	"fmt"
	"io"
)

//go:embed schema.json
var schemaJSON []byte

// schemaCmd prints the one document that holds all schemas.
type schemaCmd struct {
	Output string `short:"o" placeholder:"FILE" help:"Write there instead of to standard output."`
}

func (c *schemaCmd) do(a *app) (int, error) {
	write := func(w io.Writer) error {
		if _, err := w.Write(schemaJSON); err != nil {
			return fmt.Errorf("cannot write the schemas: %w", err)
		}
		return nil
	}
	if c.Output != "" {
		return exitHolds, writeFile(c.Output, write)
	}
	return exitHolds, write(a.stdout)
}
