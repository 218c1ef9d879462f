package tandem

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/tandem/api"
	"example.com/tandem/api/num"
)

// guard is the bytes kept on either side of a payload.
const guard = 64

// rank's images in a test.
type images struct {
	mem    api.Memory
	before []api.Image // copies, to compare sources and guards with
}

// newImages makes random sources and poisoned destinations for one rank.
func newImages(call *api.Call, rank int, rng *rand.Rand, poison byte) api.Memory {
	var mem api.Memory
	for i := range call.Lanes() {
		size := int64(call.Lane(i).DType.Size())
		src, dst := call.Addrs(i, rank)
		srcLen, dstLen := call.SrcElems(i)*size, call.DstElems(i)*size
		image := func(addr uint64, n int64) api.Image {
			b := bytes.Repeat([]byte{poison}, int(n)+2*guard)
			return api.Image{Bytes: b, Addr: addr, Guard: guard}
		}
		var l api.Lane
		switch {
		case call.InPlace == api.OutOfPlace:
			l = api.Lane{Src: image(src, srcLen), Dst: image(dst, dstLen)}
		case srcLen >= dstLen:
			l.Src = image(src, srcLen)
			l.Dst = inside(l.Src, dst, dstLen)
		default:
			l.Dst = image(dst, dstLen)
			l.Src = inside(l.Dst, src, srcLen)
		}
		fill(call.Lane(i).DType, l.Src.Payload(), rng)
		mem = append(mem, l)
	}
	return mem
}

func inside(m api.Image, addr uint64, n int64) api.Image {
	off := int64(addr-m.Addr) + int64(m.Guard)
	return api.Image{Bytes: m.Bytes[off : off+n : off+n], Addr: addr}
}

// fill writes elements that round, cancel, overflow or are special.
func fill(d api.DType, b []byte, rng *rand.Rand) {
	size := d.Size()
	style := rng.IntN(3)
	for i := 0; i+size <= len(b); i += size {
		v := rng.Uint64() & d.Mask()
		if d.Float() && style != 0 {
			// Values near one another, of both signs, so that sums round.
			exp := uint64(d.Bias()+rng.IntN(5)-2) << d.MantissaBits()
			v = v&(1<<d.MantissaBits()-1) | exp | uint64(rng.IntN(2))<<(d.Bits()-1)
			if style == 2 && rng.IntN(8) == 0 {
				special := []uint64{0, 1, num.CanonicalNaN(d), d.Mask(), uint64(1<<d.ExponentBits()-1) << d.MantissaBits(), 1 << (d.Bits() - 1), 1<<(d.Bits()-1) | 1}
				v = special[rng.IntN(len(special))]
			}
		}
		num.Store(d, b[i:], v&d.Mask())
	}
}

func clone(mem []api.Memory) []api.Memory {
	var out []api.Memory
	for _, lanes := range mem {
		var m api.Memory
		for _, l := range lanes {
			c := api.Lane{Src: l.Src, Dst: l.Dst}
			c.Src.Bytes, c.Dst.Bytes = bytes.Clone(l.Src.Bytes), bytes.Clone(l.Dst.Bytes)
			m = append(m, c)
		}
		out = append(out, m)
	}
	return out
}

// judge compares what a call left with the definition and num.Eval.
func judge(c *config, call *api.Call, before, after []api.Memory) error {
	scheme := c.scheme(call)
	for rank, lanes := range after {
		for i, l := range lanes {
			d := call.Lane(i).DType
			size := d.Size()
			old := before[rank][i]
			var in []api.Input
			var bits []uint64
			got := l.Dst.Payload()
			for k := int64(0); k < call.DstElems(i); k++ {
				in = call.Inputs(in[:0], i, rank, k)
				bits = bits[:0]
				for _, x := range in {
					bits = append(bits, num.Load(d, before[x.Rank][i].Src.Payload()[x.Index*int64(size):]))
				}
				want := bits[0]
				if len(bits) > 1 {
					want = num.Eval(d, scheme, bits)
				}
				if g := num.Load(d, got[k*int64(size):]); g != want {
					return fmt.Errorf("rank %d lane %d element %d: got %#x want %#x of %#x", rank, i, k, g, want, bits)
				}
			}
			if !bytes.Equal(l.Dst.Bytes[:l.Dst.Guard], old.Dst.Bytes[:old.Dst.Guard]) || !bytes.Equal(l.Dst.Bytes[len(l.Dst.Bytes)-l.Dst.Guard:], old.Dst.Bytes[len(old.Dst.Bytes)-old.Dst.Guard:]) {
				return fmt.Errorf("rank %d lane %d: a guard of the destination changed", rank, i)
			}
			if call.InPlace == api.OutOfPlace && !bytes.Equal(l.Src.Bytes, old.Src.Bytes) {
				return fmt.Errorf("rank %d lane %d: the source changed", rank, i)
			}
			if g := l.Src.Guard; call.InPlace != api.OutOfPlace && g > 0 && (!bytes.Equal(l.Src.Bytes[:g], old.Src.Bytes[:g]) || !bytes.Equal(l.Src.Bytes[len(l.Src.Bytes)-g:], old.Src.Bytes[len(old.Src.Bytes)-g:])) {
				return fmt.Errorf("rank %d lane %d: a guard of the source changed", rank, i)
			}
		}
	}
	return nil
}

// try runs a call on random data and judges it.
func try(ctx context.Context, team api.Team, c *config, call api.Call, rng *rand.Rand) error {
	var mem []api.Memory
	poison := []byte{0xff, 0x5a}[rng.IntN(2)]
	for r := range call.Ranks {
		mem = append(mem, newImages(&call, r, rng, poison))
	}
	before := clone(mem)
	if _, err := api.Run(ctx, team, call, mem); err != nil {
		return fmt.Errorf("%s: %w", call, err)
	}
	if err := judge(c, &call, before, mem); err != nil {
		return fmt.Errorf("%s: %w", call, err)
	}
	return nil
}

// randomCall is a call that tandem takes; most bounds the bytes of a block.
func randomCall(rng *rand.Rand, ranks int, most int64) api.Call {
	all := api.Collectives()
	call := api.Call{Collective: all[rng.IntN(len(all))], Ranks: ranks}
	dtypes := api.DTypes()
	call.DType = dtypes[rng.IntN(len(dtypes))]
	count := func(d api.DType) int64 {
		n := most / int64(d.Size())
		switch rng.IntN(4) {
		case 0:
			return rng.Int64N(min(n, 40) + 1)
		case 1:
			return rng.Int64N(min(n, 3000) + 1)
		}
		return rng.Int64N(n + 1)
	}
	call.Count = count(call.DType)
	if api.IsMany(call.Collective) {
		call.Count = 0
		for range 1 + rng.IntN(5) {
			d := dtypes[rng.IntN(len(dtypes))]
			call.Many = append(call.Many, api.LaneShape{DType: d, Count: count(d) / 3})
		}
	}
	if call.Collective.Rooted() {
		call.Root = rng.IntN(ranks)
	}
	if call.Collective.Reduces() {
		var ops []api.Op
		for _, op := range api.Ops() {
			fits := op.ValidFor(call.DType)
			for _, l := range call.Many {
				fits = fits && op.ValidFor(l.DType)
			}
			if fits {
				ops = append(ops, op)
			}
		}
		call.Op = ops[rng.IntN(len(ops))]
	}
	forms := []api.InPlace{api.OutOfPlace}
	for _, f := range []api.InPlace{api.InPlaceOwn, api.InPlaceStart} {
		if _, ok := call.Collective.InPlace(api.Geometry{Ranks: ranks, Count: 1}, 0, f); ok {
			forms = append(forms, f)
		}
	}
	call.InPlace = forms[rng.IntN(len(forms))]
	for range ranks {
		call.SrcOffset = append(call.SrcOffset, rng.Int64N(17))
		call.DstOffset = append(call.DstOffset, rng.Int64N(17))
	}
	if rng.IntN(2) == 0 {
		call.SrcOffset, call.DstOffset = api.Offsets{rng.Int64N(2)}, api.Offsets{rng.Int64N(2)}
	}
	if call.InPlace != api.OutOfPlace {
		call.DstOffset = call.SrcOffset
	}
	return call
}

func seeded(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 42)) }

func mustRead(t testing.TB, text string) (*config, api.Spec) {
	spec, err := api.ParseSpec(text)
	require.NoError(t, err)
	c, err := read(spec)
	require.NoError(t, err)
	return c, spec
}
