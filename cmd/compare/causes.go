package main

import "example.com/tandem/api"

// causeTexts explains the causes that plans name, in a few words.
var causeTexts = map[api.Cause]string{
	api.OddTail:       "the last element of an odd slice is half of the narrowest word, 4 bytes",
	api.OddSliceStart: "the slices before it are odd, and no word may start there",
	api.OddCTAStart:   "the split put the CTA on an odd element, and no word may start there",
	api.OddPointer:    "the caller's buffer is off a multiple of 4 bytes, and no word may start there",
	api.CauseOffset:   "taken from the wrong offset",
	api.CauseStale:    "taken from memory that nobody wrote",
	api.CauseForeign:  "taken from other data than the call's",
}

func causeText(c api.Cause) string { return causeTexts[c] }
