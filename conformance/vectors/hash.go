package vectors

// FNV-1a, 64 bit.
const (
	fnvBasis = 14695981039346656037
	fnvPrime = 1099511628211
)

// BlockBytes is the size of the blocks of a rank's output that block_fnv1a64
// hashes one by one.
const BlockBytes = 4096

// Hash is the state of an FNV-1a hash of 64 bits. The zero Hash is not a start;
// use [NewHash].
type Hash uint64

// NewHash is the hash of nothing.
func NewHash() Hash { return fnvBasis }

// Add is the hash after more bytes.
func (h Hash) Add(p []byte) Hash {
	for _, b := range p {
		h = (h ^ Hash(b)) * fnvPrime
	}
	return h
}

// HashAll hashes every buffer. Each byte of one hash waits for the one before,
// so four buffers are hashed side by side in the time of one.
func HashAll(bufs [][]byte) []uint64 {
	out := make([]uint64, len(bufs))
	for i := 0; i < len(bufs); i += 4 {
		four := bufs[i:min(i+4, len(bufs))]
		hashFour(out[i:], four)
	}
	return out
}

func hashFour(out []uint64, bufs [][]byte) {
	h := [4]Hash{fnvBasis, fnvBasis, fnvBasis, fnvBasis}
	n := 0
	if len(bufs) == 4 {
		n = min(len(bufs[0]), len(bufs[1]), len(bufs[2]), len(bufs[3]))
		a, b, c, d := bufs[0][:n], bufs[1][:n], bufs[2][:n], bufs[3][:n]
		h0, h1, h2, h3 := h[0], h[1], h[2], h[3]
		for i := range a {
			h0 = (h0 ^ Hash(a[i])) * fnvPrime
			h1 = (h1 ^ Hash(b[i])) * fnvPrime
			h2 = (h2 ^ Hash(c[i])) * fnvPrime
			h3 = (h3 ^ Hash(d[i])) * fnvPrime
		}
		h = [4]Hash{h0, h1, h2, h3}
	} else if len(bufs) >= 2 {
		n = min(len(bufs[0]), len(bufs[1]))
		a, b := bufs[0][:n], bufs[1][:n]
		h0, h1 := h[0], h[1]
		for i := range a {
			h0 = (h0 ^ Hash(a[i])) * fnvPrime
			h1 = (h1 ^ Hash(b[i])) * fnvPrime
		}
		h[0], h[1] = h0, h1
	}
	for i, p := range bufs {
		if i < 2 || len(bufs) == 4 {
			p = p[n:]
		}
		out[i] = uint64(h[i].Add(p))
	}
}

// HashBlocks hashes a buffer in blocks of BlockBytes, the last one shorter.
func HashBlocks(p []byte) []uint64 {
	var parts [][]byte
	for len(p) > 0 {
		n := min(len(p), BlockBytes)
		parts = append(parts, p[:n])
		p = p[n:]
	}
	return HashAll(parts)
}

// Blocks is the number of block hashes of an output of n bytes.
func Blocks(n int64) int64 { return (n + BlockBytes - 1) / BlockBytes }
