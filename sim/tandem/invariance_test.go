package tandem

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"example.com/tandem/api"
	"example.com/tandem/api/num"
)

// inputs are the elements that every rank gives to one lane of a call, apart
// from where they lie.
type inputs [][]byte

// drawCall draws a call of one lane, out of place and without offsets.
func drawCall(t *rapid.T) api.Call {
	c := api.Call{
		Collective: rapid.SampledFrom([]api.Collective{api.AllReduce, api.ReduceScatter, api.AllGather, api.Broadcast, api.AllToAll}).Draw(t, "collective"),
		DType:      rapid.SampledFrom(api.DTypes()).Draw(t, "dtype"),
		Ranks:      rapid.SampledFrom([]int{1, 2, 2, 3, 4, 4, 5, 8}).Draw(t, "ranks"),
		Count:      rapid.Int64Range(0, 40).Draw(t, "count"),
	}
	if c.Collective.Reduces() {
		var ops []api.Op
		for _, o := range api.Ops() {
			if o.ValidFor(c.DType) {
				ops = append(ops, o)
			}
		}
		c.Op = rapid.SampledFrom(ops).Draw(t, "op")
		if c.DType.Float() && c.DType != num.F64 {
			c.Mode = rapid.SampledFrom([]string{"", modeNode, modeF32}).Draw(t, "mode")
		}
	}
	if c.Collective.Rooted() {
		c.Root = rapid.IntRange(0, c.Ranks-1).Draw(t, "root")
	}
	return c
}

func drawInputs(t *rapid.T, c *api.Call) inputs {
	random := rng(rapid.Uint64().Draw(t, "seed"))
	in := make(inputs, c.Ranks)
	for r := range in {
		in[r] = make([]byte, c.SrcElems(0)*int64(c.DType.Size()))
		fill(random, c.DType, in[r])
	}
	return in
}

// variant is a way of executing a call that must not change its bits.
type variant struct {
	params   string
	src, dst api.Offsets
	inPlace  api.InPlace
}

func drawVariant(t *rapid.T, c *api.Call) variant {
	v := variant{params: fmt.Sprintf("?path=%s&ctas=%d&buffers=%s&stage=%d&gpus=%d&placement=%s",
		rapid.SampledFrom([]string{"auto", "push", "direct", "two_shot"}).Draw(t, "path"),
		rapid.IntRange(1, 4).Draw(t, "ctas"),
		rapid.SampledFrom([]string{"registered", "staged"}).Draw(t, "buffers"),
		rapid.SampledFrom([]int{1024, 2048, defaultStage}).Draw(t, "stage"),
		rapid.IntRange(1, c.Ranks).Draw(t, "gpus"),
		rapid.SampledFrom([]string{"block", "cyclic"}).Draw(t, "placement"),
	)}
	for range c.Ranks {
		v.src = append(v.src, rapid.Int64Range(0, 15).Draw(t, "src"))
		v.dst = append(v.dst, rapid.Int64Range(0, 15).Draw(t, "dst"))
	}
	c.InPlace = rapid.SampledFrom([]api.InPlace{api.OutOfPlace, api.OutOfPlace, api.InPlaceOwn, api.InPlaceStart}).Draw(t, "in place")
	if v.inPlace = c.InPlace; c.Validate() != nil {
		v.inPlace = api.OutOfPlace
	}
	if c.InPlace = api.OutOfPlace; v.inPlace != api.OutOfPlace {
		v.dst = v.src
	}
	return v
}

// teamPool keeps teams open, so that calls of every kind follow one another on
// them.
type teamPool map[string]api.Team

func (p teamPool) get(t require.TestingT, params string, ranks int) api.Team {
	key := fmt.Sprint(params, ranks)
	if p[key] == nil {
		p[key] = openTeam(t, params, ranks)
	}
	return p[key]
}

// execute runs a call on inputs in some way, requires that nothing but the
// destinations changed, and returns those.
func (p teamPool) execute(t require.TestingT, c api.Call, v variant, in inputs) [][]byte {
	c.SrcOffset, c.DstOffset, c.InPlace = v.src, v.dst, v.inPlace
	mem := make([]api.Memory, c.Ranks)
	for r := range mem {
		mem[r] = memoryOf(&c, r)
		copy(mem[r][0].Src.Payload(), in[r])
	}
	before := clone(&c, mem)
	_, err := api.Run(context.Background(), p.get(t, v.params, c.Ranks), c, mem)
	require.NoError(t, err)
	checkUntouched(t, &c, before, mem)
	out := make([][]byte, c.Ranks)
	for r := range mem {
		out[r] = mem[r][0].Dst.Payload()
	}
	return out
}

// reference is what the destinations must hold.
func reference(c *api.Call, s num.Scheme, in inputs) [][]byte {
	before := make([]api.Memory, c.Ranks)
	for r := range before {
		before[r] = api.Memory{{Src: api.Image{Bytes: in[r]}}}
	}
	out := make([][]byte, c.Ranks)
	for r := range out {
		out[r] = expect(c, s, before, r, 0)
	}
	return out
}

// cutCall is the call on elements from..to of every block, and its inputs.
func cutCall(c api.Call, in inputs, from, to int64) (api.Call, inputs) {
	size := int64(c.DType.Size())
	blocks, _ := c.Collective.Blocks(c.Ranks)
	out := make(inputs, c.Ranks)
	for r := range in {
		for b := range blocks {
			out[r] = append(out[r], in[r][(b*c.Count+from)*size:(b*c.Count+to)*size]...)
		}
	}
	c.Count = to - from
	return c, out
}

// joined is a result of two parts put together.
func joined(c *api.Call, at int64, a, b []byte) []byte {
	size := int64(c.DType.Size())
	_, blocks := c.Collective.Blocks(c.Ranks)
	out := []byte{}
	for i := range blocks {
		out = append(out, a[i*at*size:(i+1)*at*size]...)
		out = append(out, b[i*(c.Count-at)*size:(i+1)*(c.Count-at)*size]...)
	}
	return out
}

// TestInvariance: bits depend neither on size, path, alignment, the number of
// CTAs, the place of the ranks nor on how a call is split, and they are the
// reference's. 20,000 random calls.
func TestInvariance(t *testing.T) {
	want, calls := pick(20_000, 200), 0
	pool := make(teamPool)
	property := func(t *rapid.T) {
		c := drawCall(t)
		in := drawInputs(t, &c)
		plain := reference(&c, schemeOf(t, "", &c), in)
		for range 4 {
			v := drawVariant(t, &c)
			require.Equal(t, plain, pool.execute(t, c, v, in), "%v %+v", c, v)
		}
		at := rapid.Int64Range(0, c.Count).Draw(t, "split")
		a, inA := cutCall(c, in, 0, at)
		b, inB := cutCall(c, in, at, c.Count)
		outA := pool.execute(t, a, drawVariant(t, &a), inA)
		outB := pool.execute(t, b, drawVariant(t, &b), inB)
		for r := range plain {
			require.Equal(t, plain[r], joined(&c, at, outA[r], outB[r]), "%v split at %d", c, at)
		}
		calls += 6
		if len(pool) > 200 {
			clear(pool)
		}
	}
	for calls < want {
		rapid.Check(t, property)
		if t.Failed() {
			return
		}
	}
	t.Logf("%d calls", calls)
}

// TestManyIsSeveral: a lane of a many call has the bits of a call of its own.
func TestManyIsSeveral(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		many := api.Call{Collective: rapid.SampledFrom([]api.Collective{api.AllGatherMany, api.ReduceScatterMany}).Draw(t, "collective"), DType: num.F16, Ranks: rapid.IntRange(1, 5).Draw(t, "ranks")}
		if many.Collective.Reduces() {
			many.Op = rapid.SampledFrom([]api.Op{num.Sum, num.Avg, num.Max}).Draw(t, "op")
		}
		for range rapid.IntRange(1, 9).Draw(t, "lanes") {
			many.Many = append(many.Many, api.LaneShape{
				DType: rapid.SampledFrom(api.DTypes()).Draw(t, "dtype"), Count: rapid.Int64Range(0, 100).Draw(t, "count"),
			})
		}
		v := drawVariant(t, &many)
		many.SrcOffset, many.DstOffset, many.InPlace = v.src, v.dst, v.inPlace
		runCall(t, v.params, many, rng(rapid.Uint64().Draw(t, "seed")))
	})
}
