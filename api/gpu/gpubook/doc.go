// Package gpubook is the bookkeeping that drivers of package gpu without a GPU
// have in common: who may call into a context and when, what handles stand for,
// and how memory travels by descriptors and fabric handles.
//
// The rule users break: what is called "the lock is held" wants the lock that the
// books were made with, which is the driver's own; all else takes it.
package gpubook
