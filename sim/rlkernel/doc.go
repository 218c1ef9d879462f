// Package rlkernel models RL-Kernel's DeterministicCollective before and after
// its all-gather pull request: versions 43f150f and 8ccb03c.
//
// Every rank copies its input into its own staging payload, publishes a
// sequence number, waits for everybody's, reads the peers' payloads and writes
// its output, and retires the sequence number. Reductions follow the balanced
// tree over the ranks, rounded at every node in the element type, whatever the
// path; so all that the paths change is time, alignment rules and what is left
// behind when a launch fails.
//
// [Plan] is computed from a call and the addresses of its buffers. A [Program]
// executes the plan it is handed on a simulated machine: a host that enqueues
// and a stream that executes, for every rank. What lives between the calls of a
// team, the signatures compared, the staged input that an exception left
// pending, a context lost to a fault, is kept by the session that [Family.Open]
// returns.
//
// The rule users break: the waits of this library have no deadline. A rank that
// misses a call, in whatever way, leaves the others waiting for ever, and they
// usually hang in the call after the one that went wrong. Both are reported as
// hangs that name who waits for whom.
package rlkernel
