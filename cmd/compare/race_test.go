package main

import "testing"

// withoutRaceDetector skips what is long on the virtual GPU, which runs in one
// goroutine: the race detector costs ten times the time and finds nothing there.
func withoutRaceDetector(t *testing.T) {
	t.Helper()
	if raceDetector {
		t.Skip("long on the virtual GPU, which is one goroutine; runs without the race detector have it")
	}
}
