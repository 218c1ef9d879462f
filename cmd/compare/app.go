package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode"

	"github.com/alecthomas/kong"

	"example.com/tandem/api"
)

// Exit codes, as documented.
const (
	exitHolds         = 0
	exitBroken        = 1
	exitCannotCompare = 2
)

// app is everything a command reaches outside itself.
type app struct {
	ctx            context.Context
	stdin          io.Reader // nil is empty
	stdout, stderr io.Writer
	getenv         func(string) string
	backends       []api.Backend
}

// cli is the whole command line.
type cli struct {
	Run     runCmd     `cmd:"" default:"withargs" help:"One call on two backends, and a divergence report. The default."`
	Explain explainCmd `cmd:"" help:"What an implementation will do with a call: CTAs, algorithms, words, rounds, unwritten ranges, cost, evidence."`
	Sweep   sweepCmd   `cmd:"" help:"Many calls on two backends: failures made small, resumable, in shards."`
	Merge   mergeCmd   `cmd:"" help:"Joins the shards of a sweep; refuses overlaps and gaps."`
	Record  recordCmd  `cmd:"" help:"Results of many calls as vectors."`
	Replay  replayCmd  `cmd:"" help:"Checks recorded vectors against a backend or another recording."`
	Probe   probeCmd   `cmd:"" help:"Infers a reduction's order, accumulator and rounding from its outputs."`
	Bench   benchCmd   `cmd:"" help:"Times of collectives on GPUs, specs side by side."`
	Plot    plotCmd    `cmd:"" help:"Times before, after and of a reference, as a figure."`
	List    listCmd    `cmd:"" help:"Backends, implementations, parameters, evidence, and what this machine can run."`
	Schema  schemaCmd  `cmd:"" help:"The JSON schemas of all outputs."`
	Version versionCmd `cmd:"" help:"Module version, commit, Go and build tags."`
	Child   childCmd   `cmd:"" hidden:"" help:"Executes calls for another process of this command."`
}

// command is what each of them implements: an exit code, or why there is none.
type command interface {
	do(a *app) (int, error)
}

// errHelp ends parsing where help was asked for and given.
var errHelp = errors.New("help was given")

// run parses and executes a command line and gives the exit code.
func (a *app) run(args []string) (code int) {
	defer func() {
		if p := recover(); p != nil {
			code = a.fail(fmt.Errorf("internal error, please report it with this command line: %v", p))
		}
	}()
	cmd, err := a.parse(args)
	if errors.Is(err, errHelp) {
		return exitHolds
	}
	if err != nil {
		return a.fail(err)
	}
	code, err = cmd.do(a)
	var resumable *interrupted
	switch {
	case err != nil && a.ctx.Err() != nil && !errors.As(err, &resumable):
		return a.fail(errors.New("interrupted"))
	case err != nil:
		return a.fail(err)
	}
	return code
}

// fail says on one line what is wrong.
func (a *app) fail(err error) int {
	fmt.Fprintf(a.stderr, "compare: %s\n", oneLine(err.Error()))
	return exitCannotCompare
}

// maxMessage bounds the line, since parts of it come from files.
const maxMessage = 2000

// oneLine keeps a message to one line that a terminal can show: what does not
// print is replaced, whatever file it came from.
func oneLine(text string) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	text = strings.Join(strings.FieldsFunc(text, func(r rune) bool { return r == '\n' || r == '\r' }), "; ")
	text = strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return '\uFFFD'
	}, text)
	if r := []rune(text); len(r) > maxMessage {
		return string(r[:maxMessage]) + "..."
	}
	return text
}

func (a *app) parse(args []string) (cmd command, err error) {
	var c cli
	helped := false
	k, err := kong.New(&c,
		kong.Name("compare"),
		kong.Description("Executes a collective under two implementations and says where their bits part, and why.\n\n"+
			"SPEC is BACKEND:IMPLEMENTATION[@VERSION][?key=value&key=value], as sim:nvshmem@pr131?nvls=off, or file:PATH. "+
			"Exit codes: 0 the contract holds, 1 it does not, 2 nothing could be compared."),
		kong.Writers(a.stdout, a.stderr),
		kong.Exit(func(int) { helped = true; panic(errHelp) }),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, WrapUpperBound: 100}),
	)
	if err != nil {
		return nil, err
	}
	defer func() {
		if p := recover(); p != nil {
			if !helped {
				panic(p)
			}
			err = errHelp
		}
	}()
	ctx, err := k.Parse(joinNegative(args))
	if err != nil {
		return nil, parseError(k, args, err)
	}
	return ctx.Selected().Target.Addr().Interface().(command), nil
}

// joinNegative writes --count -1 as --count=-1: a number is no flag, and what is
// wrong with it is for the flag to say.
func joinNegative(args []string) []string {
	var out []string
	for _, arg := range args {
		last := len(out) - 1
		if last >= 0 && len(arg) > 1 && arg[0] == '-' && arg[1] >= '0' && arg[1] <= '9' && strings.HasPrefix(out[last], "--") && !strings.Contains(out[last], "=") {
			out[last] += "=" + arg
			continue
		}
		out = append(out, arg)
	}
	return out
}

// argumentExamples shows what a missing argument could be; one of a command's own
// has its name before.
var argumentExamples = map[string]string{
	"SPEC":       "compare explain sim:nvshmem@pr131",
	"FILE":       "compare replay recorded.jsonl.gz",
	"merge FILE": "compare merge 1.json 2.json -o all.json",
}

// parseError adds what would work to what the parser says.
func parseError(k *kong.Kong, args []string, err error) error {
	var inner *api.InvalidError
	if errors.As(err, &inner) {
		return inner
	}
	if len(args) > 0 && strings.HasPrefix(err.Error(), "unexpected argument "+args[0]) {
		var names []string
		for _, n := range k.Model.Children {
			if !n.Hidden {
				names = append(names, n.Name)
			}
		}
		return fmt.Errorf("unknown command %q (known are %s)", args[0], strings.Join(names, ", "))
	}
	if name, ok := strings.CutPrefix(err.Error(), `expected "<`); ok {
		name, _, _ = strings.Cut(name, ">")
		example := argumentExamples[name]
		if own, ok := argumentExamples[args[0]+" "+name]; ok {
			example = own
		}
		return fmt.Errorf("%s is missing (as in %s)", name, example)
	}
	if flag, ok := strings.CutSuffix(err.Error(), `: expected string value but got "EOL" (<EOL>)`); ok {
		return fmt.Errorf("%s needs a value, as %s=VALUE (compare --help shows what there is)", flag, flag)
	}
	return fmt.Errorf("%w (compare --help shows what there is)", err)
}
