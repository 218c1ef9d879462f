// Package ptxcheck reads PTX and holds it to the rules of the device protocol:
// every instruction is a form of a table, its registers have the widths of its
// type, nothing goes past the coherent caches or onto a stack, flags have an
// order and system scope, flagged lines are two 64-bit halves, and on every path
// a fence stands before a flag is raised and after one was awaited, and an alias
// fence with it where the kernel has multicast addresses. A kernel that may begin
// before the one before it on its stream has ended waits for that before it touches
// memory.
//
// Flags are found by a mark in the text, //@release or //@acquire, which the
// kernels' asm carries.
//
// The rule users break: a new instruction form is refused until forms.txt has
// it. Add it there only after reading what the PTX manual says of its order,
// scope and rounding.
package ptxcheck
