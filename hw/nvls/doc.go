// Package nvls is tandem-nvls on GPUs: all_reduce, reduce_scatter and all_gather
// through the NVSwitch, with no holes and no cliff. What the switch has no form
// for, and every other collective, is package tandem's, in the same team.
//
// Which elements go through the switch follows from collective, count, type and
// team alone: the largest multiple of 16 bytes times the ranks. The rest, less
// than that, every rank reduces for itself in tandem's fixed tree. Offsets of
// buffers, different ones on every rank too, are evened out on the way into team
// memory and out of it, so they change no bit.
//
// The rule users break: a 16-bit sum of the switch is one of the two neighbours
// of the exact sum and nobody can say which; compare it by the faithful contract.
package nvls
