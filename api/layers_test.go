package api_test

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// mayImport says, for a top-level folder, which others of this module its
// packages may import: only what lies below it. Tests are held to it as well,
// but for cmd, which may use everything anyway.
var mayImport = map[string][]string{
	"cmd":         {"cmd", "conformance", "sim", "hw", "api"},
	"conformance": {"conformance", "api"},
	"sim":         {"sim", "api"},
	"hw":          {"hw", "api"},
	"api":         {"api"},
}

// top lists what may lie at the top of the repository, dotfiles apart.
var top = []string{
	"README.md", "LICENSE", "go.mod", "go.sum", "Makefile",
	"api", "sim", "hw", "conformance", "cmd",
}

// built reports whether .gitignore leaves a file out: the command, and what go
// test writes.
func built(name string) bool {
	return name == "compare" || slices.Contains([]string{".test", ".prof", ".part"}, path.Ext(name))
}

func TestImportsPointDown(t *testing.T) {
	root := moduleRoot(t)
	module := modulePath(t, root)
	files := goFiles(t, os.DirFS(root))
	require.Greater(t, len(files), 20, "the walk found the tree")
	for _, file := range files {
		imports := fileImports(t, filepath.Join(root, filepath.FromSlash(file)))
		for _, bad := range upward(module, file, imports) {
			t.Errorf("%s imports %s: packages under %s/ may import only %v", file, bad, topFolder(file), mayImport[topFolder(file)])
		}
	}
}

// TestUpwardImportsAreSeen is what keeps the test above from passing for
// nothing: every forbidden edge, and only those, is reported.
func TestUpwardImportsAreSeen(t *testing.T) {
	const m = "example.org/m"
	for _, c := range []struct {
		file, imports string
		bad           bool
	}{
		{"cmd/compare/main.go", "sim", false},
		{"cmd/compare/main.go", "hw/cuda", false},
		{"conformance/run.go", "api/num", false},
		{"conformance/run.go", "sim", true},
		{"conformance/run_test.go", "sim", true},
		{"conformance/internal/x/x.go", "hw", true},
		{"conformance/run.go", "cmd/compare/internal/x", true},
		{"sim/sim.go", "sim/arith", false},
		{"sim/sim.go", "hw", true},
		{"sim/sim.go", "conformance", true},
		{"sim/nvshmem/plan.go", "hw/nvshmem", true},
		{"hw/hw.go", "sim/ptx", true},
		{"hw/hw.go", "conformance", true},
		{"api/call.go", "api/num", false},
		{"api/call.go", "sim", true},
		{"api/num/eval.go", "conformance", true},
		{"tools/x.go", "api", true},
	} {
		got := upward(m, c.file, []string{"fmt", "example.org/mother/sim", m + "/" + c.imports})
		if c.bad {
			require.Equal(t, []string{m + "/" + c.imports}, got, c.file)
		} else {
			require.Empty(t, got, c.file)
		}
	}
}

func TestNothingElseAtTheTop(t *testing.T) {
	entries, err := os.ReadDir(moduleRoot(t))
	require.NoError(t, err)
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), ".") && !slices.Contains(top, e.Name()) && !built(e.Name()) {
			t.Errorf("%s does not belong at the top of the repository", e.Name())
		}
	}
}

// upward is the part of imports that the package of file may not import.
func upward(module, file string, imports []string) []string {
	var bad []string
	for _, imp := range imports {
		rel, ok := strings.CutPrefix(imp, module+"/")
		if ok && !slices.Contains(mayImport[topFolder(file)], topFolder(rel)) {
			bad = append(bad, imp)
		}
	}
	return bad
}

func topFolder(name string) string {
	first, _, _ := strings.Cut(name, "/")
	return first
}

// goFiles lists every Go file of the tree, whatever its build tags.
func goFiles(t *testing.T, tree fs.FS) []string {
	t.Helper()
	var files []string
	require.NoError(t, fs.WalkDir(tree, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		hidden := name != "." && strings.HasPrefix(d.Name(), ".")
		if d.IsDir() && (hidden || d.Name() == "testdata") {
			return fs.SkipDir
		}
		if !d.IsDir() && path.Ext(name) == ".go" {
			files = append(files, name)
		}
		return nil
	}))
	return files
}

func fileImports(t *testing.T, file string) []string {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
	require.NoError(t, err)
	var out []string
	for _, imp := range parsed.Imports {
		p, err := strconv.Unquote(imp.Path.Value)
		require.NoError(t, err)
		out = append(out, p)
	}
	return out
}

func moduleRoot(t *testing.T) string {
	t.Helper()
	dir, err := os.Getwd()
	require.NoError(t, err)
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		parent := filepath.Dir(dir)
		require.NotEqual(t, parent, dir, "no go.mod above the test")
		dir = parent
	}
}

func modulePath(t *testing.T, root string) string {
	t.Helper()
	mod, err := os.ReadFile(filepath.Join(root, "go.mod"))
	require.NoError(t, err)
	line, _, _ := strings.Cut(string(mod), "\n")
	name, ok := strings.CutPrefix(line, "module ")
	require.True(t, ok, "go.mod begins with the module line")
	return strings.TrimSpace(name)
}
