package tandem

import (
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/tandem/hw/kernels"
)

// TestPlainJoins holds plainJoin to the kernels' list.
func TestPlainJoins(t *testing.T) {
	names := func(file string) (out []string) {
		text, err := kernels.Sources.ReadFile("src/" + file)
		require.NoError(t, err)
		for _, m := range regexp.MustCompile(`X\((\w+)\)`).FindAllStringSubmatch(string(text), -1) {
			out = append(out, m[1])
		}
		return out
	}
	all, plain := names("kinds.h"), names("plain.h")
	require.Len(t, all, joinBits+3)
	require.Greater(t, len(plain), 30)
	for i, name := range all {
		if plainJoin(uint64(i)) {
			require.Contains(t, plain, name)
		} else {
			require.NotContains(t, plain, name)
		}
	}
}
