package accept

import (
	_ "embed"
	"fmt"
	"strings"

	"example.com/tandem/api"
)

//go:embed pr131.tsv
var table string

// Row is a line of the pull request's table.
type Row struct {
	Call              api.Call
	Before, After     int64 // unwritten elements on every rank
	MSBefore, MSAfter string
}

// Rows reads the table.
func Rows() ([]Row, error) {
	var out []Row
	for line := range strings.Lines(table) {
		if strings.HasPrefix(line, "#") || strings.HasPrefix(line, "pes") {
			continue
		}
		var r Row
		var scope string
		var offset int64
		r.Call = api.Call{Collective: api.AllReduce, DType: api.BF16, Op: api.Sum}
		if _, err := fmt.Sscan(line, &r.Call.Ranks, &r.Call.Count, &offset, &scope, &r.Before, &r.After, &r.MSBefore, &r.MSAfter); err != nil {
			return nil, fmt.Errorf("a row of the table: %w in %q", err, line)
		}
		s, err := api.ParseScope(scope)
		if err != nil {
			return nil, err
		}
		r.Call.Scope = s
		if offset != 0 {
			r.Call.SrcOffset, r.Call.DstOffset = api.Offsets{offset}, api.Offsets{offset}
		}
		out = append(out, r)
	}
	return out, nil
}

// Neighbours are calls beside the rows: around every threshold, at odd places,
// in place, of other types.
func Neighbours(ranks int) []api.Call {
	var out []api.Call
	add := func(d api.DType, count, offset int64, in api.InPlace) {
		c := api.Call{Collective: api.AllReduce, DType: d, Op: api.Sum, Ranks: ranks, Count: count, InPlace: in}
		if offset != 0 {
			c.SrcOffset, c.DstOffset = api.Offsets{offset}, api.Offsets{offset}
		}
		out = append(out, c)
	}
	r := int64(ranks)
	for _, n := range []int64{1, r, r + 1, 2 * r, 2047, 2048, 2049, 2048 + 2*r, 8 * r * 40, 8*r*40 + 2, 4682, 16385} {
		add(api.BF16, n, 0, api.OutOfPlace)
	}
	add(api.F16, 16*r*20, 2, api.OutOfPlace)
	add(api.F16, 16*r*20, 3, api.OutOfPlace)
	add(api.BF16, 6*r, 0, api.InPlaceOwn)
	add(api.F32, 5001, 1, api.OutOfPlace)
	return out
}

// eights are sums of both 16-bit types on eight ranks, or on two where there is a
// limit: one-shot, two-shot, and the call whose blocks have odd slices.
func eights(small bool) []api.Call {
	ranks := 8
	if small {
		ranks = 2
	}
	call := func(d api.DType, count int64, scope api.Scope) api.Call {
		return api.Call{Collective: api.AllReduce, DType: d, Op: api.Sum, Ranks: ranks, Count: count, Scope: scope}
	}
	out := []api.Call{call(api.BF16, 2048, api.OnStream), call(api.F16, 2056, api.Block), call(api.F16, 256*int64(ranks), api.OnStream)}
	if !small {
		out = append(out, call(api.BF16, 1048704, api.OnStream))
	}
	return out
}
