package gputest

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
)

// M is what Main runs: a *testing.M.
type M interface{ Run() int }

// Main makes a package's last line count the tests that ran on GPUs and those
// that did not, with the reasons:
//
//	func TestMain(m *testing.M) { os.Exit(gputest.Main(m).Run()) }
func Main(m M) M { return counted{m, ran, os.Stdout} }

type counted struct {
	m   M
	y   *tally
	out io.Writer
}

// Run runs the tests.
func (c counted) Run() int {
	code := c.m.Run()
	if line := c.y.line(); line != "" {
		fmt.Fprintln(c.out, line)
	}
	return code
}

// tally is what became of the tests of this process that asked for a GPU.
type tally struct {
	mu      sync.Mutex
	on      map[string]bool     // the tests that got one
	skipped map[string][]string // by reason
	failed  []string
}

// ran is filled by Open; a test binary is one process with one last line.
var ran = newTally()

func newTally() *tally { return &tally{on: map[string]bool{}, skipped: map[string][]string{}} }

func (y *tally) got(t testing.TB) {
	y.mu.Lock()
	defer y.mu.Unlock()
	y.on[t.Name()] = true
}

func (y *tally) skip(t testing.TB, why string) {
	y.mu.Lock()
	defer y.mu.Unlock()
	y.skipped[why] = append(y.skipped[why], t.Name())
}

func (y *tally) fail(t testing.TB) {
	y.mu.Lock()
	defer y.mu.Unlock()
	y.failed = append(y.failed, t.Name())
}

// line is the last line; "" where no test asked for a GPU.
func (y *tally) line() string {
	y.mu.Lock()
	defer y.mu.Unlock()
	skipped := 0
	var why []string
	for reason, names := range y.skipped {
		skipped += len(names)
		why = append(why, fmt.Sprintf("%d: %s", len(names), reason))
	}
	if len(y.on)+skipped+len(y.failed) == 0 {
		return ""
	}
	slices.Sort(why)
	text := fmt.Sprintf("tests that ask for a GPU: %d ran on one, %d skipped", len(y.on), skipped)
	if len(y.failed) > 0 {
		text += fmt.Sprintf(", %d failed for want of one", len(y.failed))
	}
	if len(why) > 0 {
		text += " (" + strings.Join(why, "; ") + ")"
	}
	return text
}
