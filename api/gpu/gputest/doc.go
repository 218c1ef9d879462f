// Package gputest tests drivers of package gpu: the same suite runs on the real
// driver and on a virtual one, and what passes on both is the interface.
//
// [Open] opens a driver for a test, locks its devices and says what to do
// where there is none. [Run] is the suite.
//
// The rule users break: a test that skips where a GPU is meant to be is a
// failure, so never skip by hand when a driver does not open; let Open decide.
package gputest
