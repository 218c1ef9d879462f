package explain

import (
	"cmp"

	"example.com/tandem/api"
)

// Verdict says which way a cost went, from the left plan to the right one.
type Verdict string

// The verdicts.
const (
	Same   Verdict = "same"
	Faster Verdict = "faster"
	Slower Verdict = "slower"
	// Mixed is for a call whose slowest CTA and whole work went opposite ways.
	Mixed Verdict = "mixed"
	// Regrouped is for CTAs without a counterpart: the plans split the call
	// into different numbers of them.
	Regrouped Verdict = "regrouped"
)

// Work is what one CTA does in one of two plans.
type Work struct {
	Algorithm string `json:"algorithm"`
	Why       string `json:"why"`
	Count     int64  `json:"count"`     // elements
	Rounds    int64  `json:"rounds"`    // of the slowest rank
	Words     int64  `json:"words"`     // of the slowest rank
	Unwritten int64  `json:"unwritten"` // elements, in all slices
}

// Change is what became of a run of neighbouring CTAs that changed alike.
type Change struct {
	Kernel  int     `json:"kernel"`
	First   int     `json:"first"` // CTA numbers
	Last    int     `json:"last"`
	Left    *Work   `json:"left"`  // nil where the left plan has no such CTA
	Right   *Work   `json:"right"` // nil where the right plan has no such CTA
	Verdict Verdict `json:"verdict"`
	// Inverted says that these CTAs went the other way than most of the call.
	Inverted bool `json:"inverted"`
}

// Totals are counts over a whole plan.
type Totals struct {
	// Slowest is the work of the CTA that ends last, and SlowestCTA its number:
	// CTAs run side by side.
	Slowest    Work  `json:"slowest"`
	SlowestCTA int   `json:"slowest_cta"`
	Rounds     int64 `json:"rounds"` // of all CTAs
	Words      int64 `json:"words"`  // of all CTAs
	CTAs       int   `json:"ctas"`
}

// Difference is what sets two plans of one call apart.
type Difference struct {
	Changes []Change `json:"changes"`
	Left    Totals   `json:"left"`
	Right   Totals   `json:"right"`
	Verdict Verdict  `json:"verdict"`
}

// slower orders work by time. A round is a put of up to 32 KiB with a barrier,
// as long as thousands of multicast words (published times of NVSHMEM's PR 131
// are 20 to 50 us a round and 15 ns a word), so rounds decide and words only
// between equals.
func slower(a, b Work) int {
	return cmp.Or(cmp.Compare(a.Rounds, b.Rounds), cmp.Compare(a.Words, b.Words))
}

func verdictOf(order int) Verdict {
	return [...]Verdict{Slower, Same, Faster}[order+1]
}

func workOf(c *api.CTA) Work {
	w := Work{Algorithm: c.Algorithm, Why: c.Why, Count: c.Count, Rounds: c.Rounds, Words: c.Words}
	for _, s := range c.Slices {
		w.Unwritten += s.Unwritten
	}
	return w
}

// Compare tells what sets the right plan apart from the left one, CTA by CTA.
func Compare(left, right *api.Plan) Difference {
	d := Difference{Changes: []Change{}, Left: totals(left), Right: totals(right)}
	for k := range max(len(left.Kernels), len(right.Kernels)) {
		l, r := ctasOf(left, k), ctasOf(right, k)
		if len(l) == len(r) {
			for i := range l {
				a, b := workOf(&l[i]), workOf(&r[i])
				d.add(Change{k, l[i].CTA, l[i].CTA, &a, &b, verdictOf(slower(a, b)), false})
			}
			continue
		}
		for i := range l {
			a := workOf(&l[i])
			d.add(Change{k, l[i].CTA, l[i].CTA, &a, nil, Regrouped, false})
		}
		for i := range r {
			b := workOf(&r[i])
			d.add(Change{k, r[i].CTA, r[i].CTA, nil, &b, Regrouped, false})
		}
	}
	d.markInverted()
	d.Verdict = wholeVerdict(d.Left, d.Right)
	if d.Verdict == Same {
		d.Verdict = costVerdict(left.Cost, right.Cost)
	}
	return d
}

// costVerdict decides between plans without rounds and words: one exposed
// round trip a loop trip is what their time goes into.
func costVerdict(l, r api.Cost) Verdict {
	return verdictOf(cmp.Or(cmp.Compare(l.Trips, r.Trips), cmp.Compare(l.RoundTrip, r.RoundTrip), cmp.Compare(l.Launches, r.Launches)))
}

func (d *Difference) add(c Change) {
	if n := len(d.Changes); n > 0 {
		last := &d.Changes[n-1]
		if last.Kernel == c.Kernel && last.Last+1 == c.First && equalWork(last.Left, c.Left) && equalWork(last.Right, c.Right) {
			last.Last = c.Last
			return
		}
	}
	d.Changes = append(d.Changes, c)
}

func equalWork(a, b *Work) bool {
	if a == nil || b == nil {
		return a == b
	}
	return *a == *b
}

// markInverted finds out which way most elements went, and marks the CTAs that
// went the other way.
func (d *Difference) markInverted() {
	elements := map[Verdict]int64{}
	for _, c := range d.Changes {
		if c.Right != nil {
			elements[c.Verdict] += c.Right.Count * int64(c.Last-c.First+1)
		}
	}
	against := Slower
	if elements[Slower] > elements[Faster] {
		against = Faster
	}
	for i := range d.Changes {
		d.Changes[i].Inverted = d.Changes[i].Verdict == against && elements[Slower] > 0 && elements[Faster] > 0
	}
}

// wholeVerdict is of the slowest CTA and of the work in all, where both do not
// point opposite ways.
func wholeVerdict(l, r Totals) Verdict {
	slow := slower(l.Slowest, r.Slowest)
	all := slower(Work{Rounds: l.Rounds, Words: l.Words}, Work{Rounds: r.Rounds, Words: r.Words})
	if slow*all < 0 {
		return Mixed
	}
	return verdictOf(cmp.Or(slow, all))
}

func ctasOf(p *api.Plan, kernel int) []api.CTA {
	if kernel >= len(p.Kernels) {
		return nil
	}
	return p.Kernels[kernel].CTAs
}

func totals(p *api.Plan) Totals {
	var t Totals
	for k := range p.Kernels {
		for i := range p.Kernels[k].CTAs {
			c := &p.Kernels[k].CTAs[i]
			w := workOf(c)
			if t.CTAs == 0 || slower(w, t.Slowest) > 0 {
				t.Slowest, t.SlowestCTA = w, c.CTA
			}
			t.CTAs++
			t.Rounds += w.Rounds
			t.Words += w.Words
		}
	}
	return t
}
