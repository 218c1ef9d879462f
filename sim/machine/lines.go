package machine

import "slices"

// run is a range of line data that carries one flag.
type run struct {
	lo, hi int64
	flag   uint32
	from   stamp
}

// stamp is what a word or line carries besides its value: who wrote it, and
// what that makes visible to whoever acquires it.
type stamp struct {
	agent, time uint32
	step        uint32
	rel         clock
	alias       clock
	scope       Scope
}

// flags are the line flags of one rank: runs sorted and apart. Lines nobody
// wrote carry flag 0.
type flags struct{ runs []run }

// settle forgets who wrote: between two runs everything is ordered.
func (f *flags) settle() {
	for i := range f.runs {
		f.runs[i].from = stamp{agent: nobody}
	}
}

func (f *flags) find(lo int64) int {
	i, _ := slices.BinarySearchFunc(f.runs, lo, func(r run, lo int64) int {
		if r.hi <= lo {
			return -1
		}
		return 1
	})
	return i
}

// set gives the lines of [lo, hi) a flag.
func (f *flags) set(lo, hi int64, flag uint32, from stamp) {
	i := f.find(lo)
	if i < len(f.runs) && f.runs[i].lo == lo && f.runs[i].hi == hi {
		f.runs[i].flag, f.runs[i].from = flag, from
		return
	}
	j := i
	var keep [3]run
	n := 0
	if i < len(f.runs) && f.runs[i].lo < lo {
		left := f.runs[i]
		left.hi = lo
		keep[n] = left
		n++
	}
	keep[n] = run{lo, hi, flag, from}
	n++
	for ; j < len(f.runs) && f.runs[j].lo < hi; j++ {
		if f.runs[j].hi > hi {
			right := f.runs[j]
			right.lo = hi
			keep[n] = right
			n++
		}
	}
	f.runs = slices.Replace(f.runs, i, j, keep[:n]...)
}

// writers calls each for the runs that overlap [lo, hi), until it returns false.
func (f *flags) writers(lo, hi int64, each func(*run) bool) {
	for i := f.find(lo); i < len(f.runs) && f.runs[i].lo < hi; i++ {
		if !each(&f.runs[i]) {
			return
		}
	}
}

// all reports whether every line of [lo, hi) carries flag, and calls each for
// the runs it went through.
func (f *flags) all(lo, hi int64, flag uint32, each func(*run)) bool {
	for i := f.find(lo); lo < hi; i++ {
		if i == len(f.runs) || f.runs[i].lo > lo {
			return false // flag 0 is never asked for
		}
		if f.runs[i].flag != flag {
			return false
		}
		if each != nil {
			each(&f.runs[i])
		}
		lo = f.runs[i].hi
	}
	return true
}
