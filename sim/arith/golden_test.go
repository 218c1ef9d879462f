package arith

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"sync"
	"testing"
	"time"

	"example.com/tandem/api/num"
	"github.com/stretchr/testify/require"
)

// goldenLine is one operation recorded on an H200 over all pairs of 16-bit
// operands, as hashes. For operand a, h(a) is FNV-1a over the two-byte results for
// b = 0..65535; row g folds h(256g)..h(256g+255), each as 8 little-endian bytes.
type goldenLine struct {
	DType string   `json:"dtype"`
	Op    string   `json:"op"`
	Rows  []string `json:"rows"`
}

const (
	fnvBasis = 0xCBF29CE484222325
	fnvPrime = 0x100000001B3
	allB     = 1 << 16
)

// goldenSchemes are the recorded operations that take pairs.
var goldenSchemes = map[string]num.Scheme{
	"hadd":           {Op: num.Sum},
	"operator+":      {Op: num.Sum},
	"f32add_rn":      {Op: num.Sum, Acc: num.AccF32},
	"f32add_rz":      {Op: num.Sum, Acc: num.AccF32, Last: num.TowardZero},
	"hmul":           {Op: num.Prod},
	"operator*":      {Op: num.Prod},
	"hmin":           {Op: num.Min},
	"hmax":           {Op: num.Max},
	"hmin_nan":       {Op: num.Min, MinMax: num.PropagateNaN},
	"hmax_nan":       {Op: num.Max, MinMax: num.PropagateNaN},
	"ternary_lt_min": {Op: num.Min, MinMax: num.Ternary},
	"ternary_gt_max": {Op: num.Max, MinMax: num.Ternary},
}

func goldenLines(t *testing.T) []goldenLine {
	f, err := os.Open("testdata/arith-sm90.jsonl")
	require.NoError(t, err)
	defer f.Close()
	var lines []goldenLine
	for in := bufio.NewScanner(f); in.Scan(); {
		var l goldenLine
		require.NoError(t, json.Unmarshal(in.Bytes(), &l))
		lines = append(lines, l)
	}
	require.Len(t, lines, 30)
	return lines
}

// TestGolden reproduces recorded rows: one of the 256 of each line, another one
// for each line, or all of them with TANDEM_EXHAUSTIVE=1.
func TestGolden(t *testing.T) {
	all := os.Getenv("TANDEM_EXHAUSTIVE") == "1"
	for _, o := range implementations() {
		for i, same := range sameOperations(goldenLines(t)) {
			if testing.Short() && !all && i%10 != 0 {
				continue
			}
			t.Run(goldenName(o, same), func(t *testing.T) {
				if len(same[0].Rows) == 1 {
					goldenWidening(t, o, same[0])
					return
				}
				// Rows 0x7C and 0x7F hold the infinities and NaNs of f16 and bf16.
				rows := []int{(0x7C + 37*i) & 0xFF}
				if all {
					rows = rows[:0]
					for g := range 256 {
						rows = append(rows, g)
					}
				}
				start := time.Now()
				checkRows(t, o, same, rows)
				if all {
					t.Logf("%v for 2^32 results", time.Since(start).Round(time.Millisecond))
				}
			})
		}
	}
}

// sameOperations groups the lines that are one operation under two names, so that
// it is computed once.
func sameOperations(lines []goldenLine) [][]goldenLine {
	var groups [][]goldenLine
	at := map[string]int{}
	for _, l := range lines {
		key := l.DType + " " + l.Op
		if s, ok := goldenSchemes[l.Op]; ok {
			key = fmt.Sprintf("%s %+v", l.DType, s)
		}
		if i, ok := at[key]; ok {
			groups[i] = append(groups[i], l)
			continue
		}
		at[key] = len(groups)
		groups = append(groups, []goldenLine{l})
	}
	return groups
}

func goldenName(o Options, same []goldenLine) string {
	name := assembly()
	if o.Portable {
		name = "portable"
	}
	name += "/" + same[0].DType + "/" + same[0].Op
	for _, l := range same[1:] {
		name += "=" + l.Op
	}
	return name
}

// goldenWidening checks the line of the conversions to f32.
func goldenWidening(t *testing.T, o Options, line goldenLine) {
	d, err := num.ParseDType(line.DType)
	require.NoError(t, err)
	src, dst := everyB(), make([]byte, 4*allB)
	o.Convert(dst, num.F32, src, d, num.NearestEven)
	h := uint64(fnvBasis)
	for _, b := range dst {
		h = (h ^ uint64(b)) * fnvPrime
	}
	require.Equal(t, line.Rows[0], fmt.Sprintf("%016x", h))
}

func everyB() []byte {
	p := make([]byte, 2*allB)
	for b := range allB {
		put16(p, 2*b, uint16(b))
	}
	return p
}

// checkRows computes the rows on all processors and compares them with every line.
func checkRows(t *testing.T, o Options, same []goldenLine, rows []int) {
	todo := make(chan int, len(rows))
	for _, g := range rows {
		todo <- g
	}
	close(todo)
	var wg sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			run := newPairs(o, same[0])
			for g := range todo {
				got := fmt.Sprintf("%016x", run.row(g))
				for _, line := range same {
					if got != line.Rows[g] {
						t.Errorf("%s row %#02x: hash %s, recorded %s", line.Op, g, got, line.Rows[g])
					}
				}
			}
		})
	}
	wg.Wait()
}

// pairs computes all results of one operation for given first operands.
type pairs struct {
	do   func(dst, a []byte) // for an a and every b
	a    []byte
	dsts [4][]byte // hashed together: the chains of multiplications overlap
}

func newPairs(o Options, line goldenLine) *pairs {
	o.Workers = 1
	d, err := num.ParseDType(line.DType)
	if err != nil {
		panic(err)
	}
	p := &pairs{a: make([]byte, 2*allB)}
	for i := range p.dsts {
		p.dsts[i] = make([]byte, 2*allB)
	}
	b := everyB()
	if s, ok := goldenSchemes[line.Op]; ok {
		p.do = func(dst, a []byte) { o.Reduce(dst, d, s, a, b) }
		return p
	}
	r := num.NearestEven
	switch line.Op {
	case "from_f32_rz":
		r = num.TowardZero
	case "from_f32_rn":
	default:
		panic("unknown operation " + line.Op)
	}
	// The float whose bits are a<<16 | b.
	wide := make([]byte, 4*allB)
	for i := range allB {
		put16(wide, 4*i, uint16(i))
	}
	p.do = func(dst, a []byte) {
		first := get16(a, 0)
		for i := 2; i < len(wide)-1; i += 4 {
			put16(wide, i, first)
		}
		o.Convert(dst, d, wide, num.F32, r)
	}
	return p
}

func (p *pairs) row(g int) uint64 {
	row := uint64(fnvBasis)
	for a := 256 * g; a < 256*(g+1); a += len(p.dsts) {
		for i, dst := range p.dsts {
			put16(p.a, 0, uint16(a+i))
			for n := 2; n < len(p.a); n *= 2 {
				copy(p.a[n:], p.a[:n])
			}
			p.do(dst, p.a)
		}
		for _, h := range hash4(p.dsts) {
			for k := range 8 {
				row = (row ^ h>>(8*k)&0xFF) * fnvPrime
			}
		}
	}
	return row
}

// hash4 hashes four ranges at once: the multiplications of one chain wait for
// each other.
func hash4(p [4][]byte) [4]uint64 {
	h0, h1, h2, h3 := uint64(fnvBasis), uint64(fnvBasis), uint64(fnvBasis), uint64(fnvBasis)
	p0 := p[0]
	p1, p2, p3 := p[1][:len(p0)], p[2][:len(p0)], p[3][:len(p0)]
	for i := 0; i < len(p0)-1; i += 2 {
		h0 = (h0 ^ uint64(p0[i])) * fnvPrime
		h1 = (h1 ^ uint64(p1[i])) * fnvPrime
		h2 = (h2 ^ uint64(p2[i])) * fnvPrime
		h3 = (h3 ^ uint64(p3[i])) * fnvPrime
		h0 = (h0 ^ uint64(p0[i+1])) * fnvPrime
		h1 = (h1 ^ uint64(p1[i+1])) * fnvPrime
		h2 = (h2 ^ uint64(p2[i+1])) * fnvPrime
		h3 = (h3 ^ uint64(p3[i+1])) * fnvPrime
	}
	return [4]uint64{h0, h1, h2, h3}
}
