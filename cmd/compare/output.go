package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"example.com/tandem/api"
	"example.com/tandem/cmd/compare/internal/term"
)

// outputFlags are the OUTPUT flags.
type outputFlags struct {
	Format  string `group:"Output:" default:"text" help:"text or json; html for run, sweep, replay and explain, and junit for the first three."`
	Output  string `group:"Output:" short:"o" placeholder:"FILE" help:"Write there instead of to standard output."`
	NoColor bool   `group:"Output:" help:"No colours; also NO_COLOR and a pipe."`
}

// Formats that a command has beside text and json: reports are pages too, and
// those with a verdict are what build systems read.
var (
	reportFormats  = []string{"html"}
	verdictFormats = []string{"html", "junit"}
)

// check refuses an unknown format before any work is done.
func (o *outputFlags) check(more ...string) error {
	known := append([]string{"text", "json"}, more...)
	if !slices.Contains(known, o.Format) {
		last := len(known) - 1
		return &api.InvalidError{Field: "format", Value: o.Format, Reason: "unknown", Hint: "known are " + strings.Join(known[:last], ", ") + " and " + known[last]}
	}
	return nil
}

// style is how text is emphasised where it goes.
func (a *app) style(o *outputFlags) term.Style {
	return term.Coloured(o.Output == "" && term.Wants(a.stdout, o.NoColor, a.getenv))
}

// emit writes the result in the form and to the place asked for.
func (a *app) emit(o *outputFlags, text func(term.Style) string, value any) error {
	var out []byte
	switch o.Format {
	case "json":
		b, err := json.MarshalIndent(value, "", "  ")
		if err != nil {
			return fmt.Errorf("cannot write the result as JSON: %w", err)
		}
		out = append(b, '\n')
	case "html":
		out = []byte(htmlPage(text(term.Coloured(true))))
	case "junit":
		cases, ok := junitOf(value)
		if !ok {
			return &api.InvalidError{Field: "format", Value: o.Format, Reason: "the result has no verdict", Hint: "text or json"}
		}
		xml, err := junit(cases)
		if err != nil {
			return fmt.Errorf("cannot write the result as XML: %w", err)
		}
		out = []byte(xml)
	default:
		out = []byte(text(a.style(o)))
	}
	if o.Output != "" {
		return writeFile(o.Output, func(w io.Writer) error { _, err := w.Write(out); return err })
	}
	if _, err := a.stdout.Write(out); err != nil {
		return fmt.Errorf("cannot write the result: %w", err)
	}
	return nil
}

// writeFile writes a file whole or not at all: under another name first, which
// takes the place of the old one at the end. What is no plain file, such as a
// device, is written as it is.
func writeFile(name string, write func(io.Writer) error) error {
	bad := func(err error) error {
		if e, ok := err.(*fs.PathError); ok {
			err = e.Err
		}
		return &api.InvalidError{Field: "o", Value: name, Reason: "cannot be written: " + err.Error(), Hint: "name a file in a folder that exists and may be written"}
	}
	if info, err := os.Stat(name); err == nil && !info.Mode().IsRegular() {
		// Opening a pipe that nobody reads would wait, and nothing could end it.
		f, err := os.OpenFile(name, os.O_WRONLY|syscall.O_NONBLOCK, 0)
		if errors.Is(err, syscall.ENXIO) {
			return bad(errors.New("nobody reads it"))
		}
		if err != nil {
			return bad(err)
		}
		defer f.Close()
		return write(f)
	}
	f, err := os.CreateTemp(filepath.Dir(name), filepath.Base(name)+".*.part")
	if err != nil {
		return bad(err)
	}
	defer os.Remove(f.Name())
	if err := write(f); err != nil {
		f.Close()
		return err
	}
	if err := f.Close(); err != nil {
		return bad(err)
	}
	if err := os.Chmod(f.Name(), 0o644); err != nil {
		return bad(err)
	}
	if err := os.Rename(f.Name(), name); err != nil {
		return bad(err)
	}
	return nil
}
