// Package vectors reads and writes vector files: recorded calls with what every
// rank ended up with, as JSON Lines, gzip-compressed or plain. Version 2 is
// written; versions 1 and 2 are read.
//
// The first line is a [Header], every other one a [Row]: a call, its inputs, and
// per rank the FNV-1a hash of the output and, for short ones, the output itself.
// A rank's output is its destination, all lanes one after another, little-endian,
// with the poison in elements that no store reached.
//
// A file is untrusted: lines and counts are bounded, sizes are computed with
// overflow in mind, unknown fields are refused, and every error names its line.
//
// The rule users break: a hash says nothing about elements that may differ. Where
// a call has elements without an exact contract, a row without the whole output
// cannot be checked.
package vectors
