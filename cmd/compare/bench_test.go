package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// BenchmarkDefaults is `compare`, but for the start of the process.
func BenchmarkDefaults(b *testing.B) {
	for b.Loop() {
		require.Equal(b, exitBroken, compare().code)
	}
}

// BenchmarkReplay is the largest recording.
func BenchmarkReplay(b *testing.B) {
	for b.Loop() {
		require.Equal(b, exitHolds, compare("replay", "testdata/golden/nvshmem-3.4.5-h200-p2p.jsonl.gz").code)
	}
	b.ReportMetric(9893*float64(b.N)/b.Elapsed().Seconds(), "calls/s")
}

// BenchmarkExplain plans 2^40 elements on as many ranks as there may be.
func BenchmarkExplain(b *testing.B) {
	for b.Loop() {
		require.Equal(b, exitHolds, compare("explain", "sim:nvshmem@pr131", "--ranks", "1024", "--count", "1099511627776", "--format", "json").code)
	}
}
