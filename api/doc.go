// Package api defines the collectives, once, and the contracts between the
// parts that execute, compare and explain them.
//
// A [Call] is one invocation of a [Collective], complete: dtype, op, ranks,
// count, offsets, in place or not, scope and team. A [Backend] executes calls
// under a named implementation ([Spec]); a [Plan] is what that implementation
// decides for a call before it touches data. Package sim and package hw are
// backends; package conformance compares two of them and imports neither.
//
// The rule users break: alignment and overlap are judged on [Image].Addr, the
// address the modelled device would see, never on the address of a Go slice.
// All counts and offsets are in elements unless a name says bytes.
package api
