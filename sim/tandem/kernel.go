package tandem

import (
	"slices"

	"example.com/tandem/sim/machine"
)

// kernel is one block of a launch on one rank: its steps, computed from their
// index. Block 0 keeps the protocol, the others wait for its word. In order:
//
//	enter    the team is neither closed nor poisoned
//	claim    block 0 takes the owner word; the others wait until it has
//	headers  a line to every peer: the epoch, and what call this is
//	push     data to the peers' boxes, which is team memory, so at once
//	agree    every peer's header has come and says the same
//	work     reads of boxes, or of the peers' buffers between flag barriers
//	leave    block 0, when the others are gone: left, the next epoch, the owner
//
// What lies between claim and leave exists twice, for even and odd epochs. The
// epoch lives in device memory and picks the half of the boxes; no argument of
// the launch depends on it, so a captured launch can be replayed.
//
// A warp signals all peers at once and waits for all at once. A wait that ends
// without what it waited for goes on peer by peer, to the first that is missing:
// it records whom it waited for, tells every peer to abort, and leaves. Before a
// wait the abort word is looked at once without recording, so that a rank which
// comes late to a dead call does not claim to have waited.
type kernel struct {
	*launch
	block  int
	phases []phase
	size   int
	hint   int
	odd    int // first step of the body for odd epochs
	labels [phaseKinds]int32
}

// phase is a run of steps of one kind.
type phase struct {
	kind   phaseKind
	parity uint8
	which  uint8 // of signals and awaits: the flag phase
	chunk  int32
	start  int32 // index of its first step
	twin   int32 // of a wait: where its missing peers are looked for; there: the step after the wait
}

type phaseKind uint8

const (
	pEnter phaseKind = iota
	pClaim
	pParity
	pHeaders
	pPush
	pStamp
	pCheck
	pAgree
	pSame
	pArrivals
	pStage
	pSignal
	pAwait
	pWork
	pGather
	pUnstage
	pOver
	pLateHeaders
	pOthers
	pLateLines
	pLateFlags
	pSkip
	pRecord
	pAbort
	pQuiet
	pTwoCalls
	pStale
	pPoisoned
	pUnstarted
	pCrash
	pLeave
	pEnd
	phaseKinds
)

// phaseTable says how many steps a phase has and what they are.
var phaseTable = [phaseKinds]struct {
	size func(*kernel, *phase) int
	step func(*kernel, *machine.Step, *phase, int)
}{
	pEnter:       {(*kernel).enterSize, (*kernel).enter},
	pClaim:       {(*kernel).claimSize, (*kernel).claim},
	pParity:      {one, (*kernel).parity},
	pHeaders:     {(*kernel).headersSize, (*kernel).headers},
	pPush:        {(*kernel).pushSize, (*kernel).push},
	pStamp:       {(*kernel).stampSize, (*kernel).stamp},
	pCheck:       {(*kernel).checkSize, (*kernel).check},
	pAgree:       {(*kernel).checkSize, (*kernel).agree},
	pSame:        {(*kernel).sameSize, (*kernel).same},
	pArrivals:    {(*kernel).arrivalsSize, (*kernel).arrivals},
	pStage:       {(*kernel).stageSize, (*kernel).stage},
	pSignal:      {(*kernel).signalSize, (*kernel).signal},
	pAwait:       {one, (*kernel).await},
	pWork:        {(*kernel).workSize, (*kernel).work},
	pGather:      {(*kernel).gatherSize, (*kernel).gather},
	pUnstage:     {(*kernel).unstageSize, (*kernel).unstage},
	pOver:        {one, (*kernel).over},
	pLateHeaders: {(*kernel).lateHeadersSize, (*kernel).lateHeaders},
	pOthers:      {(*kernel).othersSize, (*kernel).others},
	pLateLines:   {(*kernel).lateLinesSize, (*kernel).lateLines},
	pLateFlags:   {(*kernel).lateFlagsSize, (*kernel).lateFlags},
	pSkip:        {(*kernel).skipSize, (*kernel).skip},
	pRecord:      {(*kernel).recordSize, (*kernel).record},
	pAbort:       {(*kernel).abortSize, (*kernel).abort},
	pQuiet:       {(*kernel).quietSize, (*kernel).quiet},
	pTwoCalls:    {(*kernel).twoCallsSize, (*kernel).twoCalls},
	pStale:       {(*kernel).departSize, (*kernel).depart},
	pPoisoned:    {(*kernel).departSize, (*kernel).depart},
	pUnstarted:   {(*kernel).departSize, (*kernel).depart},
	pCrash:       {(*kernel).crashSize, (*kernel).crash},
	pLeave:       {(*kernel).leaveSize, (*kernel).leave},
	pEnd:         {none, nil},
}

func none(*kernel, *phase) int { return 0 }
func one(*kernel, *phase) int  { return 1 }

// newKernel lays out the steps of one block.
func newKernel(l *launch, block int) *kernel {
	k := &kernel{launch: l, block: block, phases: make([]phase, 0, 48)}
	for kind := pEnter; kind <= pParity; kind++ {
		k.add(phase{kind: kind})
	}
	k.body(0)
	k.odd = k.size
	k.body(1)
	k.diagnoses()
	for kind := pSkip; kind <= pEnd; kind++ {
		k.labels[kind] = int32(k.size)
		k.add(phase{kind: kind})
	}
	return k
}

// add appends a phase, unless it is empty.
func (k *kernel) add(p phase) {
	last := len(k.phases)
	p.start = int32(k.size)
	k.phases = append(k.phases, p)
	n := phaseTable[p.kind].size(k, &k.phases[last])
	if n == 0 {
		k.phases = k.phases[:last]
	}
	k.size += n
}

// body is the call in epochs of one parity.
func (k *kernel) body(parity uint8) {
	add := func(kind phaseKind, which uint8, chunk int32) {
		k.add(phase{kind: kind, parity: parity, which: which, chunk: chunk})
	}
	barrier := func(which uint8, chunk int32) {
		add(pSignal, which, chunk)
		add(pCheck, which, chunk)
		add(pAwait, which, chunk)
	}
	for _, kind := range [...]phaseKind{pHeaders, pPush, pStamp, pCheck, pAgree, pSame} {
		add(kind, 0, 0)
	}
	switch k.path {
	case pathLocal:
		add(pWork, 0, 0)
	case pathPush:
		add(pCheck, 0, 0)
		add(pArrivals, 0, 0)
		add(pWork, 0, 0)
	case pathDirect, pathTwoShot:
		for chunk := range int32(k.chunks) {
			if k.staged {
				add(pStage, 0, chunk)
				barrier(phaseReady, chunk)
			}
			add(pWork, 0, chunk)
			if k.path == pathTwoShot {
				barrier(phaseShared, chunk)
				add(pGather, 0, chunk)
			}
			barrier(phaseDone, chunk)
			add(pUnstage, 0, chunk)
		}
	}
	add(pOver, 0, 0)
}

// diagnoses adds, for every wait, the steps that find the peer it misses.
func (k *kernel) diagnoses() {
	for i := range k.phases {
		p := &k.phases[i]
		if late := lateKinds[p.kind]; late != 0 {
			twin := *p
			twin.kind, twin.twin = late, k.phases[i+1].start
			p.twin = int32(k.size)
			k.add(twin)
		}
	}
}

// lateKinds says where the missing peers of a wait are looked for.
var lateKinds = [phaseKinds]phaseKind{pAgree: pLateHeaders, pSame: pOthers, pArrivals: pLateLines, pAwait: pLateFlags}

// to is the first step of a phase that exists once.
func (k *kernel) to(kind phaseKind) int { return int(k.labels[kind]) }

// find is the phase of a step.
func (k *kernel) find(i int) *phase {
	n := k.hint
	for ; n+1 < len(k.phases) && n < k.hint+2; n++ {
		if int(k.phases[n].start) <= i && i < int(k.phases[n+1].start) {
			k.hint = n
			return &k.phases[n]
		}
	}
	n, found := slices.BinarySearchFunc(k.phases, i, func(p phase, i int) int { return int(p.start) - i })
	if !found {
		n--
	}
	k.hint = n
	return &k.phases[n]
}

// step is step i; its jumps count from the kernel's first step.
func (k *kernel) step(s *machine.Step, i int) {
	p := k.find(i)
	s.Fails = k.to(pCrash)
	phaseTable[p.kind].step(k, s, p, i-int(p.start))
}
