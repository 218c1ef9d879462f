// Package bench times collectives under several specs side by side and tells what
// it found: medians, intervals, floors, crossovers, and what changed since.
//
// Samples of the specs alternate; each is prepared outside of what is timed. A
// rank's time is the median of its samples, a call's the slowest rank's: the
// maximum of the medians, not the median of the maxima.
//
// The rule users break: figures of two runs are not compared by eye. Put both specs
// into one run, and read the ratio and its interval.
package bench
