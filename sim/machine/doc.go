// Package machine simulates the ranks of a team: one memory each, multicast
// ranges over all of them, and the thread blocks (CTAs) that work on them.
//
// A [Program] is the steps of each CTA of each rank as data: Len and Step,
// computed from the index. No Go code runs inside a CTA; its state is one
// integer, the index of its next step. Words carry control (signals, epochs,
// abort words), ranges carry data, and no step decides on the data of a range.
// So a run has two passes: the first schedules the program, moving words and
// flags only, and finds races, hangs and bad accesses before any byte of a
// caller's buffer has changed; the second moves the data as if in the order of the
// first: moves that do not depend on each other are one batch, done in the order of
// memory, and a result is written to everybody who copies it when it is computed.
//
// There are two schedulers over one interpreter. The fast one runs every CTA up
// to its next unsatisfied wait. The seeded one picks the CTA of every step, so
// that one seed is one execution; ranks can be made to fail, stop or sleep at a
// step of theirs. Time is virtual and moves only when everything waits.
//
// Two accesses to overlapping bytes, one of them a store, must be ordered by
// synchronisation, whatever the schedule of this run did with them; otherwise
// the run ends in a [*Race]. The unit is the CTA: the steps of one CTA are taken
// as separated by its own barrier, so a missing __syncthreads is not found. Lines
// and words are atomic: one that is written again before its reader has come shows
// as a hang or a wrong flag under the schedule that does it, not as a race.
//
// The rule users break: a step owns its length. All ranges of a step are Bytes
// long, and a destination is either apart from each source or exactly one of
// them.
package machine
