package main

import (
	"encoding/json"
	"strings"
	"sync"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/stretchr/testify/require"
)

// schemas compiles the document once.
var schemas = sync.OnceValues(func() (*jsonschema.Resolved, error) {
	var s jsonschema.Schema
	if err := json.Unmarshal(schemaJSON, &s); err != nil {
		return nil, err
	}
	return s.Resolve(nil)
})

// requireSchema holds an output to the schemas, of which exactly one must fit.
func requireSchema(t *testing.T, output string) {
	t.Helper()
	s, err := schemas()
	require.NoError(t, err)
	var v any
	require.NoError(t, json.Unmarshal([]byte(output), &v))
	require.NoError(t, s.Validate(v), "%.3000s", output)
}

// validate holds a text to one definition of the document.
func validate(name, text string) error {
	var s jsonschema.Schema
	if err := json.Unmarshal(schemaJSON, &s); err != nil {
		return err
	}
	s.OneOf = []*jsonschema.Schema{{Ref: "#/$defs/" + name}}
	one, err := s.Resolve(nil)
	if err != nil {
		return err
	}
	var v any
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		return err
	}
	return one.Validate(v)
}

// TestOutputsFitTheirSchemas is over commands and calls of every kind; the
// other tests of JSON add theirs.
func TestOutputsFitTheirSchemas(t *testing.T) {
	for _, args := range []string{
		"run", "run --right sim:nvshmem@2dca770", "run --collective all_to_all --count 9", "run --collective broadcast --root 1 --dtype u8 --count 5000 --in-place",
		"run --collective reduce_scatter --in-place=start --count 33 --dtype f64 --ranks 3 --left sim:nvshmem@3.4.5?nvls=off --right sim:nvshmem@3.4.5?nvls=off",
		"run --ranks 4 --count 30000 --left sim:nvshmem@3.4.5?nvls=off --right sim:nvshmem@3.4.5",
		"run --count 100 --values 0x4380,0x3f80", "run --count 100 --input uniform:-0.5:1 --seed 3", "run --count 100 --input order_free",
		"run --collective all_gather --count 64 --src-offset 1 --dst-offset 1 --scope block --left sim:nvshmem@3.4.5 --right sim:nvshmem@3.4.5?fcollect_ll_threshold=0",
		"explain sim:nvshmem@2dca770", "explain sim:nvshmem@3.4.5 --count 1099511627776", "explain sim:nvshmem@3.4.5 --count 0",
		"explain sim:nvshmem@pr131?rs_align=shifted --collective reduce_scatter --count 262145",
		"explain sim:nvshmem@2dca770 --against sim:nvshmem@pr131", "explain sim:nvshmem@2dca770 --against sim:nvshmem@pr131?nvls=off --ranks 4",
		"list", "version",
	} {
		got := compare(append(strings.Fields(args), "--format", "json")...)
		require.NotEqual(t, exitCannotCompare, got.code, "%s: %s", args, got.stderr)
		requireSchema(t, got.stdout)
		require.True(t, strings.HasSuffix(got.stdout, "}\n"))
	}
}

// TestSchemaSeesMistakes keeps the tests above honest.
func TestSchemaSeesMistakes(t *testing.T) {
	s, err := schemas()
	require.NoError(t, err)
	good := compare("version", "--format", "json").stdout
	for _, bad := range []string{
		strings.Replace(good, "tandem.version/1", "tandem.version/2", 1),
		strings.Replace(good, `"commit"`, `"comit"`, 1),
		strings.Replace(good, `"modified": false`, `"modified": 0`, 1),
		"{}", "[]", "null",
	} {
		var v any
		require.NoError(t, json.Unmarshal([]byte(bad), &v))
		require.NotEqual(t, good, bad)
		require.Error(t, s.Validate(v), bad)
	}
}

func TestSchemaCommand(t *testing.T) {
	got := compare("schema")
	require.Equal(t, exitHolds, got.code)
	require.Equal(t, string(schemaJSON), got.stdout)
}
