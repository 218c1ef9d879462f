package api_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/tandem/api"
)

func TestParseSpec(t *testing.T) {
	for text, want := range map[string]api.Spec{
		"sim:nvshmem@pr131":          {Backend: "sim", Implementation: "nvshmem", Version: "pr131"},
		"sim:nvshmem@3.4.5?nvls=off": {Backend: "sim", Implementation: "nvshmem", Version: "3.4.5", Params: map[string]string{"nvls": "off"}},
		"sim:nvshmem@2dca770?reduce_algo=3&max_ctas=32": {Backend: "sim", Implementation: "nvshmem", Version: "2dca770",
			Params: map[string]string{"reduce_algo": "3", "max_ctas": "32"}},
		"hw:tandem":         {Backend: "hw", Implementation: "tandem"},
		"sim:x?empty=":      {Backend: "sim", Implementation: "x", Params: map[string]string{"empty": ""}},
		"file:a/b:c?d.gz":   {Backend: "file", Path: "a/b:c?d.gz"},
		"ptx:dir/all.ptx":   {Backend: "ptx", Path: "dir/all.ptx"},
		"sim:x?a=1%262&b=%": {},
		"":                  {},
		"sim":               {},
		"sim:":              {},
		":nvshmem":          {},
		"file:":             {},
		"sim:@1":            {},
		"sim:nvshmem@":      {},
		"sim:?a=1":          {},
		"sim:x?a=1&a=2":     {},
		"sim:x?=1":          {},
		"sim:x?a=1;b=2":     {},
	} {
		got, err := api.ParseSpec(text)
		if want.Backend == "" {
			require.ErrorIs(t, err, api.ErrInvalid, text)
			require.Contains(t, err.Error(), "sim:nvshmem@pr131?nvls=off", "says what would work")
			require.Contains(t, err.Error(), `"`+text+`"`, "quotes what was given")
			continue
		}
		require.NoError(t, err, text)
		require.Equal(t, want, got, text)
		require.Equal(t, text, sortedParams(text, got.String()), "round trip")
	}
}

// sortedParams is text where only the order of parameters sets the two apart.
func sortedParams(text, got string) string {
	a, errA := api.ParseSpec(text)
	b, errB := api.ParseSpec(got)
	if errA == nil && errB == nil && len(text) == len(got) && a.String() == b.String() {
		return text
	}
	return got
}

func TestSpecParam(t *testing.T) {
	s, err := api.ParseSpec("sim:nvshmem@pr131?nvls=off&empty=")
	require.NoError(t, err)
	require.Equal(t, "off", s.Param("nvls", "on"))
	require.Equal(t, "", s.Param("empty", "on"))
	require.Equal(t, "on", s.Param("absent", "on"))
	require.Equal(t, "on", api.Spec{}.Param("absent", "on"))
}

func FuzzParseSpec(f *testing.F) {
	for _, seed := range []string{
		"sim:nvshmem@pr131", "sim:nvshmem@2dca770?reduce_algo=3&max_ctas=32", "hw:tandem", "file:x?y", "ptx:k.ptx",
		"sim:x?a=%26", "sim:x?a=b+c", "sim:x?%20=1", "sim:x@y@z", "a?b:c", ":", "sim:x?", "sim:x?&", "sim:\x00", "ptx:.ptx?a=b", "sim:x?a=#",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s, err := api.ParseSpec(text)
		if err != nil {
			require.ErrorIs(t, err, api.ErrInvalid)
			return
		}
		again, err := api.ParseSpec(s.String())
		require.NoError(t, err, "%q, written as %q", text, s.String())
		if len(s.Params) == 0 {
			s.Params, again.Params = nil, nil
		}
		require.Equal(t, s, again, "%q, written as %q", text, s.String())
	})
}
