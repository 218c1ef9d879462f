package matrix

// pairwise chooses one value per axis (as an index below sizes[axis]) in few
// rows, so that every pair of values of two axes that can be completed to a row
// stands in one. possible judges a row in which axes not chosen yet are -1. The
// rows depend on the arguments alone.
func pairwise(sizes []int, possible func(row []int) bool) [][]int {
	open := newPairs(sizes)
	var rows [][]int
	for {
		a, x, b, y, ok := open.first()
		if !ok {
			return rows
		}
		row := make([]int, len(sizes))
		for i := range row {
			row[i] = -1
		}
		row[a], row[b] = x, y
		if possible(row) && complete(row, sizes, open, possible) {
			rows = append(rows, row)
			open.cover(row)
		}
		open.drop(a, x, b, y) // covered, or impossible
	}
}

// complete fills in the axes still open, each with the value that makes most
// new pairs, and steps back where that leads nowhere.
func complete(row, sizes []int, open *pairs, possible func([]int) bool) bool {
	axis := -1
	for i, v := range row {
		if v < 0 {
			axis = i
			break
		}
	}
	if axis < 0 {
		return true
	}
	tried := make([]bool, sizes[axis])
	for range tried {
		best, gain := -1, -1
		for v := range sizes[axis] {
			if tried[v] {
				continue
			}
			if g := open.gain(row, axis, v); g > gain {
				best, gain = v, g
			}
		}
		tried[best] = true
		row[axis] = best
		if possible(row) && complete(row, sizes, open, possible) {
			return true
		}
		row[axis] = -1
	}
	return false
}

// product lists every possible row, in order.
func product(sizes []int, possible func(row []int) bool) [][]int {
	var rows [][]int
	row := make([]int, len(sizes))
	for i := range row {
		row[i] = -1
	}
	var walk func(axis int)
	walk = func(axis int) {
		if axis == len(sizes) {
			rows = append(rows, append([]int(nil), row...))
			return
		}
		for v := range sizes[axis] {
			row[axis] = v
			if possible(row) {
				walk(axis + 1)
			}
		}
		row[axis] = -1
	}
	walk(0)
	return rows
}

// pairs is the set of pairs of values that no row holds yet.
type pairs struct {
	sizes []int
	open  [][][][]bool // by axis a < b, then value of a, then of b
}

func newPairs(sizes []int) *pairs {
	p := &pairs{sizes: sizes, open: make([][][][]bool, len(sizes))}
	for a := range sizes {
		p.open[a] = make([][][]bool, len(sizes))
		for b := a + 1; b < len(sizes); b++ {
			p.open[a][b] = make([][]bool, sizes[a])
			for x := range sizes[a] {
				p.open[a][b][x] = make([]bool, sizes[b])
				for y := range sizes[b] {
					p.open[a][b][x][y] = true
				}
			}
		}
	}
	return p
}

func (p *pairs) first() (a, x, b, y int, ok bool) {
	for a := range p.sizes {
		for b := a + 1; b < len(p.sizes); b++ {
			for x := range p.sizes[a] {
				for y, open := range p.open[a][b][x] {
					if open {
						return a, x, b, y, true
					}
				}
			}
		}
	}
	return 0, 0, 0, 0, false
}

func (p *pairs) drop(a, x, b, y int) { p.open[a][b][x][y] = false }

func (p *pairs) cover(row []int) {
	for a, x := range row {
		for b := a + 1; b < len(row); b++ {
			p.drop(a, x, b, row[b])
		}
	}
}

// gain is how many open pairs value v of an axis makes with what row holds.
func (p *pairs) gain(row []int, axis, v int) int {
	n := 0
	for other, w := range row {
		switch {
		case w < 0 || other == axis:
		case other < axis && p.open[other][axis][w][v]:
			n++
		case other > axis && p.open[axis][other][v][w]:
			n++
		}
	}
	return n
}
