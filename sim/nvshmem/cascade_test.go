package nvshmem

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"example.com/tandem/api"
)

// cascadeSlow moves one word at a time and marks every byte.
func cascadeSlow(dst, src uint64, bytes int64, widths []int64) (words api.WordCount, reached []bool) {
	reached = make([]bool, bytes)
	at := int64(0)
	for _, w := range widths {
		if (dst+uint64(at))%uint64(w) != 0 || (src+uint64(at))%uint64(w) != 0 {
			continue
		}
		for ; at+w <= bytes; at += w {
			for i := range w {
				reached[at+i] = true
			}
			switch w {
			case 16:
				words.W16++
			case 8:
				words.W8++
			case 4:
				words.W4++
			}
		}
	}
	return words, reached
}

func TestCascadeAgainstOneWordAtATime(t *testing.T) {
	for dst := uint64(0); dst < 16; dst++ {
		for src := uint64(0); src < 16; src++ {
			for bytes := int64(0); bytes < 80; bytes++ {
				for _, widths := range [][]int64{widthsAll, widthsNo16} {
					words, touched := cascade(dst, src, bytes, widths)
					slow, reached := cascadeSlow(dst, src, bytes, widths)
					require.Equal(t, slow, words, "dst %d src %d bytes %d", dst, src, bytes)
					for i, r := range reached {
						require.Equal(t, int64(i) < touched, r, "dst %d src %d bytes %d: byte %d", dst, src, bytes, i)
					}
				}
			}
		}
	}
}

// The closed form: a prefix of 4*floor(len/4) bytes if both are 4-byte aligned.
func TestCascadeClosedForm(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		dst, src := rapid.Uint64Range(0, 1<<60).Draw(rt, "dst"), rapid.Uint64Range(0, 1<<60).Draw(rt, "src")
		bytes := rapid.Int64Range(0, 1<<44).Draw(rt, "bytes")
		words, touched := cascade(dst, src, bytes, widthsAll)
		require.Equal(t, touched, 16*words.W16+8*words.W8+4*words.W4)
		if aligned4(dst, src) {
			require.Equal(t, bytes/4*4, touched)
		} else {
			require.Zero(t, touched)
		}
	})
}
