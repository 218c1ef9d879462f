package bench

import "math"

// conclude computes what follows from several rows: ratios to the first spec,
// floors, crossovers.
func (r *Report) conclude() {
	groups := r.groups()
	for _, g := range groups {
		first := &r.Rows[g.rows[0]]
		for _, i := range g.rows[1:] {
			row := &r.Rows[i]
			if first.Refused != "" || row.Refused != "" {
				continue
			}
			v, lo, hi := ratio(row.RankSamples, first.RankSamples)
			row.Ratio = &Ratio{To: first.Spec, Value: v, Low: lo, High: hi}
		}
		if f := r.Floors; f != nil && f.B > 0 && first.Launch != Eager {
			for _, i := range g.rows {
				r.Rows[i].FloorUs = f.F1 + r.Rows[i].wire()/f.B/1e3
			}
		}
	}
	r.Crossovers = append(r.Crossovers, r.crossovers(groups)...)
}

// group is the rows of one point, in the order of the specs.
type group struct {
	point Point
	rows  []int
}

func (r *Report) groups() []group {
	var out []group
	for i := range r.Rows {
		if n := len(out); n > 0 && out[n-1].point == r.Rows[i].Point {
			out[n-1].rows = append(out[n-1].rows, i)
			continue
		}
		out = append(out, group{r.Rows[i].Point, []int{i}})
	}
	return out
}

// crossovers are where, from one size to the next, another of two specs, of which
// one is the first, is the faster. Between the sizes the times are taken for straight lines on logarithmic
// axes.
func (r *Report) crossovers(groups []group) []Crossover {
	var out []Crossover
	for n := 1; n < len(groups); n++ {
		a, b := groups[n-1], groups[n]
		same := a.point
		same.Bytes = b.point.Bytes
		if same != b.point || b.point.Bytes <= a.point.Bytes || len(a.rows) != len(b.rows) {
			continue
		}
		for k := 1; k < len(a.rows); k++ {
			if c := crossing(&r.Rows[a.rows[0]], &r.Rows[a.rows[k]], &r.Rows[b.rows[0]], &r.Rows[b.rows[k]]); c != nil {
				out = append(out, *c)
			}
		}
	}
	return out
}

// crossing is the crossover of the specs of two rows, x and y, between one size
// and the next; nil if there is none.
func crossing(x0, y0, x1, y1 *Row) *Crossover {
	for _, r := range []*Row{x0, y0, x1, y1} {
		if r.Refused != "" || r.Us <= 0 {
			return nil
		}
	}
	d0, d1 := logRatio(x0.Us, y0.Us), logRatio(x1.Us, y1.Us)
	if d0 == 0 || d0 > 0 == (d1 > 0) && d1 != 0 {
		return nil
	}
	c := &Crossover{Point: x0.Point, From: x0.Spec, To: y0.Spec, Below: x0.Bytes, Beyond: x1.Bytes}
	if d0 > 0 {
		c.From, c.To = c.To, c.From
	}
	c.Bytes = between(x0.Bytes, x1.Bytes, d0/(d0-d1))
	return c
}

func logRatio(a, b float64) float64 { return math.Log(a) - math.Log(b) }

// between is the size a share of the way from one to another on a logarithmic
// axis.
func between(from, to int64, share float64) int64 {
	lo, hi := math.Log(float64(from)), math.Log(float64(to))
	return int64(math.Round(math.Exp(lo + share*(hi-lo))))
}
