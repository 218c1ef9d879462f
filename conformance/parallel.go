package conformance

import (
	"sync/atomic"

	"golang.org/x/sync/errgroup"
)

// parallel calls f(0) to f(n-1) on at most workers goroutines and gives one of
// the errors. What f writes must depend on its argument alone.
func parallel(workers, n int, f func(i int) error) error {
	if workers <= 1 || n <= 1 {
		for i := range n {
			if err := f(i); err != nil {
				return err
			}
		}
		return nil
	}
	var next atomic.Int64
	var g errgroup.Group
	for range min(workers, n) {
		g.Go(func() error {
			for {
				i := int(next.Add(1)) - 1
				if i >= n {
					return nil
				}
				if err := f(i); err != nil {
					return err
				}
			}
		})
	}
	return g.Wait()
}
