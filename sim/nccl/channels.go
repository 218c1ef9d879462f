package nccl

import "example.com/tandem/api"

// traffic is what a call asks of a channel before it gets a second one.
const minTraffic = 16 << 10 // bytes of traffic

// protocol holds the library's constants of one protocol.
type protocol struct {
	name string
	// threads times threshold is what a channel must have to do, in bytes;
	// LL's threshold is multiplied by the number of ranks.
	threads, threshold int64
	chunk              int64 // bytes of one chunk of an all-reduce ring
	factor             int64 // traffic of a byte, against Simple
}

func protocolOf(name string) protocol {
	switch name {
	case protoLL:
		return protocol{name, 512, 8, 32 << 10, 4}
	case protoLL128:
		return protocol{name, 640, 8, 576000, 1}
	}
	return protocol{protoSimple, 512, 64, 2 << 20, 1}
}

// part is the range of elements that one channel works on.
type part struct{ start, count int64 }

// channelParts cuts an all-reduce into channels, as scheduleCollTasksToPlan
// does for a call that is alone in its plan.
func channelParts(c *api.Call, p params, proto protocol) []part {
	size := int64(c.DType.Size())
	bytes := c.Count * size
	nc := usedChannels(bytes, int64(c.Ranks), p, proto)
	const perByte = 2 // of an all-reduce
	weight := perByte * proto.factor
	cellBytes := ceilDiv(ceilDiv(minTraffic, weight), 16) * 16
	cellElems := cellBytes / size
	cells := ceilDiv(bytes, cellBytes)
	perChannel := max(minTraffic, max(minTraffic, bytes*weight)/nc)
	perCell := cellBytes * weight
	each := min(cells, ceilDiv(perChannel, perCell))

	lo := each
	if p.channels == 1 {
		lo = cells
	}
	mid, hi := (cells-lo)/each, (cells-lo)%each
	if channels := 1 + mid + min(hi, 1); channels > p.channels {
		mid = p.channels - 2
		each = (cells - lo) / (mid + 1)
		hi = each + (cells-lo)%(mid+1)
	}
	if hi == 0 && mid != 0 {
		hi, mid = each, mid-1
	}
	counts := []int64{lo}
	for range mid {
		counts = append(counts, each)
	}
	if hi != 0 {
		counts = append(counts, hi)
	}
	parts := make([]part, len(counts))
	var at int64
	for i, n := range counts {
		// The last cell of the last channel is cut short.
		parts[i] = part{at, min(n*cellElems, c.Count-at)}
		at += parts[i].count
	}
	return parts
}

// usedChannels is the number of channels that have enough to do.
func usedChannels(bytes, ranks int64, p params, proto protocol) int64 {
	threshold := proto.threshold
	if proto.name == protoLL {
		threshold *= ranks
	}
	return max(1, min(p.channels, bytes/(proto.threads*threshold)))
}

// chunkElems is the length of a chunk in the loop that begins with rem elements
// of the channel left: whole chunks, and for the last loop what is left shared
// out evenly, rounded up to 16 bytes.
func chunkElems(rem, ranks, size int64, proto protocol) int64 {
	chunk := proto.chunk / size
	if rem < ranks*chunk {
		grain := 16 / size
		chunk = ceilDiv(ceilDiv(rem, ranks), grain) * grain
	}
	return chunk
}

func ceilDiv(a, b int64) int64 { return (a + b - 1) / b }
