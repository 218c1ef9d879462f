package gpu

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"
)

// Kind is a kind of object that is released by hand.
type Kind uint8

// The kinds.
const (
	KindContext Kind = iota
	KindMemory
	KindHostMemory
	KindPhysical
	KindMulticast
	KindMapping
	KindDescriptor
	KindStream
	KindEvent
	KindModule
	KindGraph
	KindGraphExec
	KindLock
	kinds
)

var kindNames = [kinds]string{
	"context", "allocation", "host allocation", "handle", "multicast object", "mapping", "descriptor",
	"stream", "event", "module", "graph", "executable graph", "device lock",
}

// String is the kind in words.
func (k Kind) String() string { return kindNames[min(k, kinds-1)] }

// Counts says how many objects there are of each kind.
type Counts struct {
	Live        [kinds]int
	Quarantined [kinds]int
}

// None reports whether nothing lives; what is quarantined does not count.
func (c Counts) None() bool { return c.Live == [kinds]int{} }

// String lists what lives, and what is quarantined after it.
func (c Counts) String() string {
	list := func(n [kinds]int, word string) (parts []string) {
		for k, v := range n {
			plural := map[bool]string{true: "s"}[v != 1]
			if v != 0 {
				parts = append(parts, fmt.Sprintf("%d %s%s%s", v, word, Kind(k), plural))
			}
		}
		return parts
	}
	parts := append(list(c.Live, ""), list(c.Quarantined, "quarantined ")...)
	if len(parts) == 0 {
		return "nothing"
	}
	return strings.Join(parts, ", ")
}

// Ledger counts the live objects of a driver or, below it, of a context. The
// zero value is an empty ledger without one above it.
type Ledger struct {
	above *Ledger
	mu    sync.Mutex
	next  uint64
	live  map[uint64]*Entry
	quar  [kinds]int
}

// NewLedger is a ledger whose entries are also counted in another.
func NewLedger(above *Ledger) *Ledger { return &Ledger{above: above} }

// Entry is one live object in a ledger.
type Entry struct {
	kind   Kind
	what   func() string
	undo   func() error // guarded by the ledger's lock
	ledger *Ledger
	id     uint64
	up     *Entry
}

// Add counts an object. what describes it when it is reported as left; it is
// called then only, and may be nil.
func (l *Ledger) Add(k Kind, what func() string) *Entry {
	e := &Entry{kind: k, what: what, ledger: l}
	if l.above != nil {
		e.up = l.above.Add(k, what)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.live == nil {
		l.live = make(map[uint64]*Entry)
	}
	l.next++
	e.id = l.next
	l.live[e.id] = e
	return e
}

// Release takes the object off the ledger. Again does nothing; nor does it on
// a nil Entry.
func (e *Entry) Release() { e.remove(false) }

// Quarantine moves the object to those that are kept on purpose.
func (e *Entry) Quarantine() { e.remove(true) }

func (e *Entry) remove(quarantine bool) {
	if e == nil {
		return
	}
	e.up.remove(quarantine)
	e.ledger.mu.Lock()
	defer e.ledger.mu.Unlock()
	if _, ok := e.ledger.live[e.id]; !ok {
		return
	}
	delete(e.ledger.live, e.id)
	if quarantine {
		e.ledger.quar[e.kind]++
	}
}

// Counts is the present state.
func (l *Ledger) Counts() Counts {
	l.mu.Lock()
	defer l.mu.Unlock()
	c := Counts{Quarantined: l.quar}
	for _, e := range l.live {
		c.Live[e.kind]++
	}
	return c
}

// sorted are the live entries, oldest first.
func (l *Ledger) sorted() []*Entry {
	l.mu.Lock()
	defer l.mu.Unlock()
	var all []*Entry
	for _, e := range l.live {
		all = append(all, e)
	}
	slices.SortFunc(all, func(a, b *Entry) int { return cmp.Compare(a.id, b.id) })
	return all
}

// Orphan says that nobody holds the object: its maker failed half-way and could
// not clean up at once. undo is tried again by UndoAll.
func (e *Entry) Orphan(undo func() error) {
	e.ledger.mu.Lock()
	defer e.ledger.mu.Unlock()
	e.undo = undo
}

// UndoAll tries to release the orphans, newest first.
func (l *Ledger) UndoAll() {
	for _, e := range slices.Backward(l.sorted()) {
		l.mu.Lock()
		undo := e.undo
		l.mu.Unlock()
		if undo != nil && undo() == nil {
			e.Release()
		}
	}
}

// QuarantineAll moves everything that lives to what is kept on purpose.
func (l *Ledger) QuarantineAll() {
	for _, e := range l.sorted() {
		e.Quarantine()
	}
}

// leakLines is how many left objects a LeakError describes.
const leakLines = 5

// Check is nil where nothing lives, else a *LeakError in the owner's name.
func (l *Ledger) Check(owner string) error {
	c := l.Counts()
	if c.None() {
		return nil
	}
	leak := &LeakError{Owner: owner, Left: c}
	for _, e := range l.sorted() {
		if e.what != nil && len(leak.What) < leakLines {
			leak.What = append(leak.What, e.what())
		}
	}
	return leak
}
