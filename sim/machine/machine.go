package machine

import (
	"fmt"
	"time"

	"example.com/tandem/api"
)

// Folder is arithmetic that depends on the place of an element, as that of a
// switch with hidden state may. at is the place in bytes of the first one; dst may
// be one of srcs exactly.
type Folder interface {
	Fold(dst []byte, at int64, srcs ...[]byte)
}

// Config is what a machine is made with.
type Config struct {
	Ranks int
	// GPUs is the GPU of each rank; nil gives each its own. It decides what a
	// GPU-scoped access reaches.
	GPUs []int
	// Arrive and Progress are the lengths of the deadlines; zero stands for
	// 60 s and 5 s.
	Arrive, Progress time.Duration
}

// Machine holds what persists between the runs of a team: boxes, lines and
// words, and memory to be used again. Runs of one machine must not overlap.
type Machine struct {
	cfg Config
	mem []memory
	all shadow // multicast accesses, where every rank has the same addresses

	program   Program
	ctas      int
	needs     Needs
	symmetric bool
	agents    []agent
	barriers  []barrier
	clocks    clocks
	stamps    slab[stamp]
	now       int64 // virtual nanoseconds
	version   uint64
	steps     []int // executed, by rank
	opt       Options

	cur       *agent // the agent whose step is looked at
	multicast bool   // by which proxy
	before    func(touch) bool
	step      Step
	trace     []move
	batches   []int // where they begin in the trace
	order     order
	look      Step
	jobs      jobs
	inOrder   bool // for tests: move as scheduled
	fills     []fill
	guarded   bool
	injected  []bool
	log       logger
	meeting   []clock
	meetingA  []clock
	self      []tick
	srcs      [][]byte
	dsts      [][]byte
}

// fill is poison that scratch must hold before a move reads it.
type fill struct {
	at     int // index in the trace
	rank   int
	lo, hi int64
}

// New returns a machine whose boxes, lines and words hold zeros.
func New(cfg Config) *Machine {
	if cfg.Arrive == 0 {
		cfg.Arrive = 60 * time.Second
	}
	if cfg.Progress == 0 {
		cfg.Progress = 5 * time.Second
	}
	m := &Machine{cfg: cfg, mem: make([]memory, cfg.Ranks), steps: make([]int, cfg.Ranks)}
	m.before = m.ordered
	m.all.order = &m.order
	for r := range m.mem {
		m.mem[r].follow(&m.order)
	}
	return m
}

// Options choose how a program is run. The zero value is the fast scheduler.
type Options struct {
	// Seeded picks the CTA of every step by Seed.
	Seeded bool
	Seed   uint64
	// Inject makes ranks misbehave.
	Inject []Injection
	// Trace asks for the text of every step taken.
	Trace bool
}

// Harm is what an injection does to a rank.
type Harm uint8

// The harms.
const (
	Fail  Harm = iota + 1 // the step fails: its CTA goes to Else, or ends
	Stop                  // the rank never runs on
	Delay                 // the rank sleeps for For of virtual time
)

// Injection harms a rank when it is about to execute its step number Step,
// counted from 0 over all its CTAs.
type Injection struct {
	Rank, Step int
	Harm       Harm
	For        time.Duration
}

// End is how a CTA ended.
type End struct {
	Status uint64
	Step   int // where
}

// Result is what a run did.
type Result struct {
	// Written are, by rank, the destination bytes that stores reached.
	Written [][]api.Interval
	// Ends are how the CTAs ended, by rank and CTA.
	Ends [][]End
	// Steps counts the steps executed by each rank.
	Steps []int
	// Now is the virtual time at the end.
	Now time.Duration
	// Trace is the text of the run, if asked for.
	Trace string
}

// Run executes a program on the memory of all ranks. The error is a *Race, an
// *api.Fault (hang or misaligned address), an *Unknown or a *BadStep, all found
// before any data moved; an *Unknown is judged on what the sources hold when the
// run begins. With an error of the schedule the result tells how far the CTAs came
// and holds no Written; otherwise it is nil.
func (m *Machine) Run(p Program, mem []api.Memory, opt Options) (*Result, error) {
	if len(mem) != m.cfg.Ranks {
		return nil, &api.InvalidError{Field: "memory", Value: fmt.Sprint(len(mem)), Reason: fmt.Sprintf("the machine has %d ranks", m.cfg.Ranks)}
	}
	if err := m.begin(p, mem, opt); err != nil {
		return nil, err
	}
	schedule := m.fast
	if opt.Seeded {
		schedule = m.seeded
	}
	if err := schedule(); err != nil {
		return m.ends(), err
	}
	if err := m.moveAll(); err != nil {
		return nil, err
	}
	return m.result(), nil
}

func (m *Machine) begin(p Program, mem []api.Memory, opt Options) error {
	m.program, m.opt, m.ctas, m.needs = p, opt, p.CTAs(), p.Needs()
	m.now, m.version, m.guarded = 0, 1, false
	m.trace, m.batches, m.fills = m.trace[:0], m.batches[:0], m.fills[:0]
	m.clocks.reset()
	m.stamps.reset()
	m.all.reset()
	m.log.reset(opt.Trace)
	clear(m.steps)
	m.injected = make([]bool, len(opt.Inject))
	for r := range m.mem {
		m.mem[r].fit(m.needs)
		m.mem[r].begin(mem[r])
	}
	m.symmetric = symmetric(mem)
	if n := m.needs.Barriers; n > len(m.barriers) {
		m.barriers = make([]barrier, n)
	}
	for i := range m.barriers {
		m.barriers[i] = barrier{members: m.barriers[i].members[:0]}
	}
	m.agents = grown(m.agents, m.ctas*m.cfg.Ranks)
	for c := range m.ctas {
		for r := range m.cfg.Ranks {
			a := &m.agents[c*m.cfg.Ranks+r]
			*a = agent{id: uint32(c*m.cfg.Ranks + r), rank: r, cta: c, len: p.Len(r, c), time: 1}
			a.done = a.len == 0
		}
	}
	return nil
}

// symmetric reports whether every rank has its buffers at the same addresses,
// so that one multicast access touches one range of them.
func symmetric(mem []api.Memory) bool {
	for _, m := range mem {
		for i := range m {
			if m[i].Src.Addr != mem[0][i].Src.Addr || m[i].Dst.Addr != mem[0][i].Dst.Addr {
				return false
			}
		}
	}
	return true
}

// live are the agents of this run.
func (m *Machine) live() []agent { return m.agents[:m.ctas*m.cfg.Ranks] }

func (m *Machine) agent(rank, cta int) *agent { return &m.agents[cta*m.cfg.Ranks+rank] }

func (m *Machine) result() *Result {
	r := m.ends()
	r.Written = make([][]api.Interval, m.cfg.Ranks)
	for rank := range r.Written {
		r.Written[rank] = m.written(rank)
	}
	return r
}

// ends is the result without what was written.
func (m *Machine) ends() *Result {
	r := &Result{
		Ends:  make([][]End, m.cfg.Ranks),
		Steps: append([]int(nil), m.steps...),
		Now:   time.Duration(m.now),
		Trace: m.log.text(),
	}
	ends := make([]End, m.cfg.Ranks*m.ctas)
	for rank := range r.Ends {
		r.Ends[rank] = ends[rank*m.ctas : (rank+1)*m.ctas]
		for c := range m.ctas {
			a := m.agent(rank, c)
			r.Ends[rank][c] = End{a.status, a.pc}
		}
	}
	return r
}

// Word is the content of a word or temp as the last run left it, 0 for one that
// no program has asked for yet.
func (m *Machine) Word(r Ref) uint64 {
	if mem := &m.mem[r.Rank]; r.Space == Word && r.Off < int64(len(mem.words)) || r.Space == Temp && r.Off < int64(len(mem.temps)) {
		return mem.wordAt(r).value
	}
	return 0
}

// SetWord gives a word that persists its content, between two runs.
func (m *Machine) SetWord(r Ref, value uint64) {
	mem := &m.mem[r.Rank]
	mem.words = grown(mem.words, int(r.Off)+1)
	mem.words[r.Off].value = value
}
