package machine

import "example.com/tandem/api/num"

// Kind is what a step does.
type Kind uint8

// The kinds. Copy and Reduce work on ranges and may wait: where a source lies in
// Line, the step waits until every line of it carries the flag Value, and data
// and flag arrive in one access. Where the destination lies in Line, every line
// written carries the flag Value. A Wait with Srcs waits for the flags of lines
// alone, of Bytes bytes each, where its peer is to be known.
const (
	Nop     Kind = iota
	Copy         // Dst = Srcs[0]
	Reduce       // Dst = Srcs folded in order under DType and Scheme
	Stamp        // give the lines of Dst the flag Value; their data is undefined
	Store        // Word = Value
	Add          // Word += Value, one atomic access
	Swap         // if Word == Expect: Word = Value, one atomic access; else go to Else
	Wait         // until Word compares true with Value
	Test         // go to Else unless Word compares true with Value
	Fence        // Order at Scope; with Alias also a proxy fence
	Barrier      // until Count CTAs have come to barrier Value; releases and acquires
	Record       // count event Word up by one, as a kernel's end does
	Await        // until event Word has been recorded Value times
	Goto         // go to Else
	Exit         // end this CTA with status Value
	Begin        // a call begins: deadlines of class Arrive count from here
)

var kindNames = [...]string{"nop", "copy", "reduce", "stamp", "store", "add", "swap", "wait", "test", "fence", "barrier", "record", "await", "goto", "exit", "begin"}

// String is the kind as traces write it.
func (k Kind) String() string { return kindNames[min(int(k), len(kindNames)-1)] }

// Order is the memory order of an access to a word, or of a fence.
type Order uint8

// The orders. A store releases, a load acquires, an atomic does both.
const (
	Relaxed Order = iota
	Release
	Acquire
	AcqRel
)

var orderNames = [...]string{"relaxed", "release", "acquire", "acq_rel"}

// String is the order as PTX writes it.
func (o Order) String() string { return orderNames[min(int(o), len(orderNames)-1)] }

func (o Order) releases() bool { return o == Release || o == AcqRel }
func (o Order) acquires() bool { return o == Acquire || o == AcqRel }

// Scope is how far an ordered access is ordered.
type Scope uint8

// The scopes; the zero value reaches every rank. A GPU may hold several ranks,
// see [Config].
const (
	System Scope = iota
	GPU
	CTA
)

var scopeNames = [...]string{"sys", "gpu", "cta"}

// String is the scope as PTX writes it.
func (s Scope) String() string { return scopeNames[min(int(s), len(scopeNames)-1)] }

// Compare is how a word is compared with Value, both under Mask.
type Compare uint8

// The comparisons.
const (
	Equal     Compare = iota
	NotEqual          // word != value
	AtLeast           // word >= value, unsigned
	Reached           // word - value >= 0 as a signed number of the mask's width, so that counters may wrap
	NonZero           // word != 0, whatever Value is
	ZeroValue         // word == 0, whatever Value is
)

var compareNames = [...]string{"==", "!=", ">=", ">=~", "!=0", "==0"}

// String is the comparison as traces write it.
func (c Compare) String() string { return compareNames[min(int(c), len(compareNames)-1)] }

// Deadline is the class of the deadline of a step that waits.
type Deadline uint8

// The classes. Arrive counts from the CTA's last Begin, or from the start of the
// run; Progress from its last wait of class Arrive that was satisfied.
const (
	Never Deadline = iota
	Arrive
	Progress
)

var deadlineNames = [...]string{"never", "arrive", "progress"}

// String is the class as traces write it.
func (d Deadline) String() string { return deadlineNames[min(int(d), len(deadlineNames)-1)] }

// Nobody is the Peer of a step that waits for no rank in particular.
const Nobody = -1

// Step is one step of one CTA.
type Step struct {
	Kind Kind

	// Of Copy, Reduce and Stamp. A reference with rank All is a multicast
	// address: as a source it stands for the place on every rank, in rank
	// order; as a destination every rank is written.
	Dst    Ref
	Srcs   []Ref
	Bytes  int64 // length of Dst and of each source
	DType  num.DType
	Scheme num.Scheme
	// Width is the width in bytes of the accesses to user memory and lines,
	// if they have one that every address must be a multiple of; multicast
	// accesses always do.
	Width int
	// Fold, if set, is the arithmetic of a Reduce in the place of Scheme; it is
	// told At plus the distance in bytes from where the step's ranges begin.
	Fold Folder
	At   int64
	// SumBelow refuses a Reduce, for the reason Unless, when the sum of the
	// source elements, taken as unsigned numbers, reaches it somewhere; 0
	// allows everything.
	SumBelow uint64
	Unless   string

	// Of the kinds that work on a word.
	Word Ref
	// More are further words that a Store writes, or a Wait or a Test compares,
	// in the same step, as the threads of a warp do; all must compare true.
	More   []Ref
	Value  uint64
	Base   Ref // if set, its word's content, shifted left by Shift, is added to Value
	Shift  uint8
	Expect uint64 // of Swap
	Mask   uint64 // bits compared; 0 stands for all of them
	Cmp    Compare
	Order  Order
	Scope  Scope
	Alias  bool // of Fence: order generic and multicast accesses to the same bytes
	Count  int  // of Barrier

	// Of the kinds that wait.
	Peer     int // the rank waited for, or Nobody
	PeerBy   int // how far its CTA lies from this one, by index; reports follow it
	Deadline Deadline
	Aborts   [2]Ref // the wait ends when one of these words is not 0
	// Else is the step to go to when a wait ends without what it waited for, a
	// test fails, or the step is made to fail. 0 is none: the CTA ends with
	// the status StatusAborted, StatusExpired or StatusFailed.
	Else int
	// Fails is where a step that is made to fail goes instead of Else; 0 is Else.
	Fails int

	Note string // what the step is for, in traces and reports
}

// reset clears the step, keeping the memory of Srcs and More.
func (s *Step) reset() {
	srcs, more := s.Srcs[:0], s.More[:0]
	*s = Step{}
	s.Srcs, s.More, s.Peer = srcs, more, Nobody
}

// Statuses that a CTA ends with where its program gave none of its own.
const (
	StatusOK      uint64 = 0
	StatusAborted uint64 = 1<<64 - 1 - iota
	StatusExpired
	StatusFailed
	StatusStopped // never ran on
)
