// Package mutants is the list of ways in which the kernels are broken on
// purpose, as edits of their PTX, and of the calls that show each. The check of
// the PTX, the virtual GPU and the GPUs are all held to the one list.
//
// Mutants are found by patterns of instructions, not by line or register, so
// that kernels may be tuned under them.
//
// The rule users break: an edit that no longer finds its place is an error, not
// a mutant that nobody caught. [Mutant.Apply] says so, and the pattern must
// follow the kernels.
package mutants
