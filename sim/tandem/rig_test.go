package tandem

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/tandem/api"
	"example.com/tandem/api/num"
	"example.com/tandem/sim"
)

const guard = 64

// memoryOf is the memory of one rank as a caller lays it out: guards on both
// sides, in place the smaller buffer a part of the larger, everything poisoned.
func memoryOf(c *api.Call, rank int) api.Memory {
	mem := make(api.Memory, c.Lanes())
	for i := range mem {
		size := int64(c.Lane(i).DType.Size())
		src, dst := c.Addrs(i, rank)
		image := func(elems int64, addr uint64) api.Image {
			b := make([]byte, elems*size+2*guard)
			poison(b)
			return api.Image{Bytes: b, Addr: addr, Guard: guard}
		}
		part := func(of api.Image, elems int64, addr uint64) api.Image {
			off := int64(addr - of.Addr)
			return api.Image{Bytes: of.Bytes[off : off+elems*size+2*guard], Addr: addr, Guard: guard}
		}
		sn, dn := c.SrcElems(i), c.DstElems(i)
		switch {
		case c.InPlace == api.OutOfPlace:
			mem[i] = api.Lane{Src: image(sn, src), Dst: image(dn, dst)}
		case sn >= dn:
			l := image(sn, src)
			mem[i] = api.Lane{Src: l, Dst: part(l, dn, dst)}
		default:
			l := image(dn, dst)
			mem[i] = api.Lane{Src: part(l, sn, src), Dst: l}
		}
	}
	return mem
}

// memories are the memories of all ranks, sources filled from rng.
func memories(c *api.Call, rng *rand.Rand) []api.Memory {
	all := make([]api.Memory, c.Ranks)
	for r := range all {
		all[r] = memoryOf(c, r)
		for i := range all[r] {
			fill(rng, c.Lane(i).DType, all[r][i].Src.Payload())
		}
	}
	return all
}

// fill writes random patterns: any bits, or for floats often ones of like size,
// so that rounding matters.
func fill(rng *rand.Rand, d num.DType, b []byte) {
	size := d.Size()
	plain := rng.IntN(3) == 0
	for i := 0; i+size <= len(b); i += size {
		v := rng.Uint64() & d.Mask()
		if d.Float() && !plain {
			exp := uint64(max(d.Bias()-4, 1)) + rng.Uint64N(8)
			mask := uint64(1<<d.ExponentBits()-1) << d.MantissaBits()
			v = v&^mask | exp<<d.MantissaBits()&mask
		}
		num.Store(d, b[i:], v)
	}
}

// fillAll gives every source one pattern a rank, in all its elements.
func fillAll(c *api.Call, mem []api.Memory, values ...uint64) {
	for r := range mem {
		for i, l := range mem[r] {
			d := c.Lane(i).DType
			for at, b := 0, l.Src.Payload(); at < len(b); at += d.Size() {
				num.Store(d, b[at:], values[r])
			}
		}
	}
}

// clone copies memories, keeping what shares memory shared.
func clone(c *api.Call, mem []api.Memory) []api.Memory {
	out := make([]api.Memory, len(mem))
	for r := range mem {
		out[r] = cloneRank(c, r, mem[r])
	}
	return out
}

func cloneRank(c *api.Call, rank int, mem api.Memory) api.Memory {
	out := memoryOf(c, rank)
	for i := range mem {
		copy(out[i].Src.Bytes, mem[i].Src.Bytes)
		copy(out[i].Dst.Bytes, mem[i].Dst.Bytes)
	}
	return out
}

// expect is what the destinations must hold, by the definition and the scalar
// reference; before is the memory before the call.
func expect(c *api.Call, s num.Scheme, before []api.Memory, rank, lane int) []byte {
	d := c.Lane(lane).DType
	out := make([]byte, c.DstElems(lane)*int64(d.Size()))
	var in []api.Input
	var values []uint64
	for i := range c.DstElems(lane) {
		in, values = c.Inputs(in[:0], lane, rank, i), values[:0]
		for _, x := range in {
			values = append(values, num.Load(d, before[x.Rank][lane].Src.Payload()[x.Index*int64(d.Size()):]))
		}
		v := values[0]
		if c.Collective.Reduces() {
			v = num.Eval(d, s, values)
		}
		num.Store(d, out[i*int64(d.Size()):], v)
	}
	return out
}

// checkResult requires the right bits in every destination and nothing else
// changed.
func checkResult(t require.TestingT, c *api.Call, s num.Scheme, before, after []api.Memory) {
	for r := range after {
		for i, l := range after[r] {
			require.Equal(t, expect(c, s, before, r, i), l.Dst.Payload(), "%v: rank %d lane %d", c, r, i)
		}
	}
	checkUntouched(t, c, before, after)
}

// checkUntouched requires that nothing outside the destinations changed.
func checkUntouched(t require.TestingT, c *api.Call, before, after []api.Memory) {
	for r := range after {
		for i, l := range after[r] {
			old := before[r][i]
			n := len(l.Dst.Bytes)
			require.Equal(t, old.Dst.Bytes[:guard], l.Dst.Bytes[:guard], "%v: guard before the destination of rank %d", c, r)
			require.Equal(t, old.Dst.Bytes[n-guard:], l.Dst.Bytes[n-guard:], "%v: guard behind the destination of rank %d", c, r)
			if c.InPlace == api.OutOfPlace {
				require.Equal(t, old.Src.Bytes, l.Src.Bytes, "%v: source of rank %d", c, r)
				continue
			}
			// In place: the source but for what the destination covers.
			off := int64(l.Dst.Addr) - int64(l.Src.Addr)
			for j, b := range l.Src.Bytes {
				if at := int64(j) - guard - off; b != old.Src.Bytes[j] && (at < 0 || at >= l.Dst.Len()) {
					require.Fail(t, "changed", "%v: source of rank %d, byte %d", c, r, j-guard)
				}
			}
		}
	}
}

func spec(t require.TestingT, params string) api.Spec {
	s, err := api.ParseSpec("sim:tandem" + params)
	require.NoError(t, err)
	return s
}

func openTeam(t require.TestingT, params string, ranks int) api.Team {
	team, err := sim.New(Family{}).Open(context.Background(), spec(t, params), api.TeamConfig{Ranks: ranks})
	require.NoError(t, err)
	return team
}

func schemeOf(t require.TestingT, params string, c *api.Call) num.Scheme {
	cfg, err := parseConfig(spec(t, params))
	require.NoError(t, err)
	return cfg.scheme(c)
}

// runCall runs a call on a new team and requires the right result; it returns the
// memories.
func runCall(t require.TestingT, params string, c api.Call, rng *rand.Rand) []api.Memory {
	mem := memories(&c, rng)
	before := clone(&c, mem)
	team := openTeam(t, params, c.Ranks)
	out, err := api.Run(context.Background(), team, c, mem)
	require.NoError(t, err, "%v", c)
	checkResult(t, &c, schemeOf(t, params, &c), before, mem)
	checkWritten(t, &c, out)
	require.NoError(t, team.Close(context.Background()))
	return mem
}

// checkWritten requires that stores reached every element but those that were in
// place.
func checkWritten(t require.TestingT, c *api.Call, out []api.Outcome) {
	for r := range out {
		for lane := range c.Lanes() {
			size := int64(c.Lane(lane).DType.Size())
			hit := make([]bool, c.DstElems(lane))
			for _, w := range out[r].Written {
				if w.Lane == lane {
					require.Zero(t, w.Start%size)
					for i := w.Start / size; i < w.End/size; i++ {
						hit[i] = true
					}
				}
			}
			for i, h := range hit {
				if h == c.OwnPlace(lane, r, int64(i)) {
					require.Fail(t, "written or not", "%v: rank %d lane %d element %d", c, r, lane, i)
				}
			}
		}
	}
}

func rng(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 17)) }

func TestSmoke(t *testing.T) {
	for _, path := range []string{"auto", "push", "direct", "two_shot"} {
		for _, buffers := range []string{"registered", "staged"} {
			for _, ctas := range []int{1, 3} {
				for ranks := 1; ranks <= 5; ranks++ {
					for _, k := range api.Collectives() {
						for _, in := range []api.InPlace{api.OutOfPlace, api.InPlaceOwn, api.InPlaceStart} {
							c := api.Call{Collective: k, DType: num.BF16, Ranks: ranks, Count: 77, InPlace: in}
							if k.Reduces() {
								c.Op = num.Sum
							}
							if k.Rooted() {
								c.Root = ranks - 1
							}
							if api.IsMany(k) {
								c.Count = 0
								c.Many = []api.LaneShape{{Count: 33}, {Count: 0}, {DType: num.F32, Count: 5}}
							}
							if c.Validate() != nil {
								continue
							}
							params := fmt.Sprintf("?path=%s&buffers=%s&ctas=%d", path, buffers, ctas)
							t.Run(fmt.Sprintf("%s %v", params, c), func(t *testing.T) { runCall(t, params, c, rng(1)) })
						}
					}
				}
			}
		}
	}
}
