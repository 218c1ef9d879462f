// Package dumps reads what people already have: a directory with one file a
// rank, each raw little-endian elements or a NumPy .npy array.
//
// The rank is the last number in a file's name, so rank0.bin .. rank11.bin and
// out-0007.npy are in the right order and a listing's order does not matter.
// Files are untrusted: headers are parsed strictly and sizes are checked before
// anything is read.
//
// The rule users break: lanes of a `many` call lie one after another in a rank's
// file, without padding.
package dumps
