package main

import (
	"fmt"
	"io"
	"time"

	"github.com/jedib0t/go-pretty/v6/progress"

	"example.com/tandem/cmd/compare/internal/term"
	"example.com/tandem/conformance/matrix"
)

// progressBar shows on a terminal how far a sweep is. The nil bar shows nothing.
type progressBar struct {
	writer   progress.Writer
	tracker  *progress.Tracker
	diverged int
	ended    chan struct{}
}

// newProgress begins a bar if w is a terminal. before has what was done already.
func newProgress(w io.Writer, getenv func(string) string, total int, before map[int]matrix.Outcome) *progressBar {
	if !term.Wants(w, false, getenv) {
		return nil
	}
	b := &progressBar{writer: progress.NewWriter(), tracker: &progress.Tracker{Total: int64(total), Message: "calls"}, ended: make(chan struct{})}
	b.writer.SetOutputWriter(w)
	b.writer.SetTrackerLength(40)
	b.writer.SetUpdateFrequency(100 * time.Millisecond)
	b.writer.SetStyle(progress.StyleBlocks)
	b.writer.Style().Visibility.Value = true
	b.writer.Style().Visibility.ETA = true
	b.writer.AppendTracker(b.tracker)
	for _, o := range before {
		b.add(o)
	}
	go func() {
		b.writer.Render()
		close(b.ended)
	}()
	return b
}

// add counts a call.
func (b *progressBar) add(o matrix.Outcome) {
	if b == nil {
		return
	}
	if o.Status == matrix.Diverge {
		b.diverged++
		b.tracker.UpdateMessage(fmt.Sprintf("calls, %d diverge", b.diverged))
	}
	b.tracker.Increment(1)
}

// stop takes the bar away.
func (b *progressBar) stop() {
	if b == nil {
		return
	}
	b.writer.Stop()
	<-b.ended
}
