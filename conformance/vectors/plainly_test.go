package vectors

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestErrorsSpeakOfTheFormat and not of Go.
func TestErrorsSpeakOfTheFormat(t *testing.T) {
	for text, want := range map[string]string{
		`{"format":"vectors","version":"2"}`: "version must be a number, not text",
		`{"format":"vectors","version":1.5}`: "version must be a number that is whole and has 64 bits with its sign, not 1.5",
		`{"format":7,"version":2}`:           "format must be text, not a number",
		`[]`:                                 "the line must be an object, not a list",
		`{"cuont":1}`:                        `unknown field "cuont"`,
		`x`:                                  "not JSON after 1 bytes: invalid character 'x'",
	} {
		_, err := NewReader(strings.NewReader(text + "\n"))
		require.ErrorContains(t, err, want)
		require.NotContains(t, err.Error(), "Go ")
		require.NotContains(t, err.Error(), "json: ")
	}
	for text, want := range map[string]string{
		`{"count":"1"}`:                  "count must be a number, not text",
		`{"count":18446744073709551616}`: "count must be a number that is whole and has 64 bits with its sign, not 18446744073709551616",
		`{"poison":256}`:                 "poison must be a number that is whole and has 8 bits, not 256",
		`{"out_hex":{}}`:                 "out_hex must be a list, not an object",
		`{"out_fnv1a64":[7]}`:            "out_fnv1a64 must be text, not a number",
		`{"ranks":true}`:                 "ranks must be a number, not true or false",
	} {
		_, err := decodeRow([]byte(text), 2)
		require.ErrorContains(t, err, want)
		require.NotContains(t, err.Error(), "rowV")
	}
}
