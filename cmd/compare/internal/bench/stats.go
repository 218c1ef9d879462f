package bench

import (
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/stat"
)

// median is the middle of the samples, or the mean of the two in the middle.
func median(samples []float64) float64 {
	s := slices.Sorted(slices.Values(samples))
	n := len(s)
	if n == 0 {
		return math.NaN()
	}
	return (s[(n-1)/2] + s[n/2]) / 2
}

// slowest gives each rank's median, and which of them is the highest.
func slowest(ranks [][]float64) (medians []float64, rank int) {
	for r, samples := range ranks {
		medians = append(medians, median(samples))
		if medians[r] > medians[rank] {
			rank = r
		}
	}
	return medians, rank
}

// percentile is the p-th, of 100.
func percentile(samples []float64, p float64) float64 {
	return stat.Quantile(p/100, stat.Empirical, slices.Sorted(slices.Values(samples)), nil)
}

// fences is how many times the distance of the quartiles a sample may lie beyond
// them before it is an outlier.
const fences = 3

// outliers are the samples far from the others.
func outliers(samples []float64) []int {
	lo, hi := percentile(samples, 25), percentile(samples, 75)
	reach := fences * (hi - lo)
	out := []int{}
	for i, v := range samples {
		if v < lo-reach || v > hi+reach {
			out = append(out, i)
		}
	}
	return out
}

// resamples is how often the bootstrap draws.
const resamples = 1000

// ratio is the time of a by that of b, with the interval that the samples allow.
// A draw takes whole samples, all ranks of one together.
func ratio(a, b [][]float64) (value, low, high float64) {
	at := func(ranks [][]float64) float64 {
		m, r := slowest(ranks)
		return m[r]
	}
	rng := rand.New(rand.NewPCG(uint64(len(a[0])), uint64(len(b[0]))))
	draws := make([]float64, resamples)
	for i := range draws {
		draws[i] = at(draw(rng, a)) / at(draw(rng, b))
	}
	slices.Sort(draws)
	return at(a) / at(b), stat.Quantile(0.025, stat.Empirical, draws, nil), stat.Quantile(0.975, stat.Empirical, draws, nil)
}

// draw takes as many samples as there are, each from any.
func draw(rng *rand.Rand, ranks [][]float64) [][]float64 {
	out := make([][]float64, len(ranks))
	for range ranks[0] {
		k := rng.IntN(len(ranks[0]))
		for r := range ranks {
			out[r] = append(out[r], ranks[r][k])
		}
	}
	return out
}
