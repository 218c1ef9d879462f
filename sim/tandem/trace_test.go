package tandem

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"example.com/tandem/api"
	"example.com/tandem/sim/machine"
)

// TestTraces runs scripts and compares everything that happens, step by step,
// with what is written in testdata/traces. Rewrite with -rewrite and read the
// difference.
//
//	call FLAGS            the call: collective, dtype, op, ranks, count, params
//	run [harm=fail|stop|sleep rank=R step=K] [absent=R] [seed=S] [quiet]
//	                      quiet leaves out the steps
//	close                 the team, afterwards
func TestTraces(t *testing.T) {
	datadriven.Walk(t, "testdata/traces", func(t *testing.T, path string) {
		x := &traced{}
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			switch d.Cmd {
			case "call":
				return x.begin(t, d)
			case "run":
				return x.run(t, d)
			case "close":
				return fmt.Sprintf("%v\n", x.session.Close(machine.Options{}))
			}
			d.Fatalf(t, "unknown command")
			return ""
		})
	})
}

type traced struct {
	session *Session
	call    api.Call
}

func (x *traced) begin(t *testing.T, d *datadriven.TestData) string {
	var name, dtype, op, params string
	x.call = api.Call{Ranks: 2}
	d.ScanArgs(t, "collective", &name)
	d.ScanArgs(t, "dtype", &dtype)
	d.MaybeScanArgs(t, "op", &op)
	d.MaybeScanArgs(t, "ranks", &x.call.Ranks)
	d.MaybeScanArgs(t, "root", &x.call.Root)
	d.MaybeScanArgs(t, "params", &params)
	d.ScanArgs(t, "count", &x.call.Count)
	var err error
	if x.call.Collective, err = api.ParseCollective(name); err != nil {
		d.Fatalf(t, "%v", err)
	}
	if x.call.DType, err = api.ParseDType(dtype); err != nil {
		d.Fatalf(t, "%v", err)
	}
	if op != "" {
		if x.call.Op, err = api.ParseOp(op); err != nil {
			d.Fatalf(t, "%v", err)
		}
	}
	x.session = session(t, params, x.call.Ranks)
	plan := x.session.decide(&x.call)
	return fmt.Sprintf("%s: %s; %d CTAs (%s)\n", plan.path, plan.why, plan.grid, plan.gridWhy)
}

func (x *traced) run(t *testing.T, d *datadriven.TestData) string {
	opt := machine.Options{Trace: true}
	var harm string
	if d.MaybeScanArgs(t, "harm", &harm) {
		in := machine.Injection{For: lateBy, Harm: map[string]machine.Harm{"fail": machine.Fail, "stop": machine.Stop, "sleep": machine.Delay}[harm]}
		d.ScanArgs(t, "rank", &in.Rank)
		d.ScanArgs(t, "step", &in.Step)
		opt.Inject = append(opt.Inject, in)
	}
	opt.Seeded = d.MaybeScanArgs(t, "seed", &opt.Seed)
	calls := make([]*api.Call, x.call.Ranks)
	mem := memories(&x.call, rng(1))
	for r := range calls {
		calls[r] = &x.call
	}
	var absent int
	if d.MaybeScanArgs(t, "absent", &absent) {
		calls[absent], mem[absent] = nil, nil
	}
	_, errs := x.session.Run(opt, calls, mem, "")
	var b strings.Builder
	for line := range strings.Lines(x.session.last.Trace) {
		if !d.HasArg("quiet") && !strings.HasSuffix(line, " nop\n") && !strings.HasSuffix(line, " begin\n") && !strings.Contains(line, " goto ") {
			b.WriteString(x.legible(line))
		}
	}
	for r, err := range errs {
		fmt.Fprintf(&b, "rank %d returns: %v\n", r, err)
	}
	return b.String()
}

var (
	stepNumber = regexp.MustCompile(` #\d+ `)
	wordOrTemp = regexp.MustCompile(`\.(word|temp)\[(\d+)\]`)
	agentName  = regexp.MustCompile(` r(\d+)\.c(\d+)`)
	bigNumber  = regexp.MustCompile(`\+\d{17,}`)
)

// legible names the words of a line, leaves out what jumps count, and takes out
// the hash.
func (x *traced) legible(line string) string {
	line = stepNumber.ReplaceAllString(line, " ")
	line = bigNumber.ReplaceAllString(line, "+hash")
	line = agentName.ReplaceAllStringFunc(line, func(m string) string {
		p := agentName.FindStringSubmatch(m)
		if cta, _ := strconv.Atoi(p[2]); cta == x.session.decide(&x.call).grid {
			return " host" + p[1]
		}
		return " rank" + p[1] + "." + p[2]
	})
	return wordOrTemp.ReplaceAllStringFunc(line, func(m string) string {
		p := wordOrTemp.FindStringSubmatch(m)
		n, _ := strconv.Atoi(p[2])
		if p[1] == "word" {
			return "." + x.wordName(n)
		}
		return "." + x.tempName(n)
	})
}

func (x *traced) wordName(n int) string {
	names := []string{"generation", "poison", "abort", "host_abort", "owner", "epoch", "entered", "left", "agreed", "state", "busy"}
	ranks := x.call.Ranks
	switch {
	case n < wHeaders:
		return names[n]
	case n < int(flag(ranks, 0, 0, 0)):
		n -= wHeaders
		return fmt.Sprintf("header[%d,%d,%d]", n/2/ranks, n/2%ranks, n%2)
	}
	n -= int(flag(ranks, 0, 0, 0))
	return fmt.Sprintf("%s[%d,%d]", phaseNotes[n/ranks%flagPhases], n/ranks/flagPhases, n%ranks)
}

func (x *traced) tempName(n int) string {
	names := []string{"launched", "cancelled", "crashed", "outcome"}
	ranks, grid := x.call.Ranks, x.session.decide(&x.call).grid
	switch {
	case n < tGone:
		return names[n]
	case n < int(tStatus(grid, 0)):
		return fmt.Sprintf("gone[%d]", n-tGone)
	case n < int(tLeaked(ranks, grid, 0)):
		return fmt.Sprintf("status[%d]", n-int(tStatus(grid, 0)))
	case n < int(tSeen(ranks, grid, 0)):
		return fmt.Sprintf("leaked[%d]", n-int(tLeaked(ranks, grid, 0)))
	}
	return fmt.Sprintf("seen[%d]", n-int(tSeen(ranks, grid, 0)))
}
