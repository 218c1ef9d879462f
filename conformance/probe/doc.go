// Package probe infers how a reduction is done from its outputs alone: operand
// order and tree, accumulator, window, last rounding, subnormals, zeros, NaNs,
// overflow, min and max.
//
// It asks a [Target] for the outputs of chosen inputs, fits a [Model] to them, and
// holds the model to inputs that it has not been fitted to. Order and tree come
// from masks (+M at one rank, -M at another, small terms elsewhere: what is lost
// lies in the smallest subtree with both), the last rounding from the share of
// results rounded up as a function of the fraction.
//
// The rule users break: a verdict is about the calls that were made. Another
// count, alignment or number of ranks may take another path; probe it too.
package probe
