// Package file serves recordings as a backend: a vector file, or a directory of
// dumps with one file a rank. It answers only the calls it holds.
//
// A vector file answers a call whose row holds the whole output, or a fault, and
// whose inputs are byte for byte those the call brings. A directory of dumps
// holds outputs of one call and no inputs: it answers any call whose outputs
// have the sizes of its files, and whoever asks vouches for the inputs.
//
// The rule users break: a row that holds hashes only cannot be executed. Replay
// compares hashes; a comparison of runs needs outputs.
package file
