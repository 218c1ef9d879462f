package api_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestExportedNamesAreDocumented is the part of `make lint` that go vet has
// not: an exported name without a doc comment, or a package without one.
func TestExportedNamesAreDocumented(t *testing.T) {
	root := moduleRoot(t)
	packages := map[string]bool{} // folder -> has a package comment
	for _, file := range goFiles(t, os.DirFS(root)) {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		set := token.NewFileSet()
		parsed, err := parser.ParseFile(set, filepath.Join(root, filepath.FromSlash(file)), nil, parser.ParseComments|parser.SkipObjectResolution)
		require.NoError(t, err)
		dir := filepath.Dir(file)
		packages[dir] = packages[dir] || parsed.Doc != nil
		for _, id := range undocumented(parsed) {
			t.Errorf("%s:%d: %s has no doc comment", file, set.Position(id.Pos()).Line, id.Name)
		}
	}
	for dir, documented := range packages {
		if !documented {
			t.Errorf("package %s has no package comment", dir)
		}
	}
}

// TestUndocumentedNamesAreSeen keeps the test above honest.
func TestUndocumentedNamesAreSeen(t *testing.T) {
	const src = `package p

// Documented is.
func Documented() {}

func Bare() {}

// T is.
type T struct{ Field int }

func (T) Method()    {}
func (*T) Pointer()  {}
func (t *T) private() {}

type hidden struct{}

func (hidden) Method() {}

// Gen is.
type Gen[K any] struct{}

func (*Gen[K]) Bare() {}

// A group comment serves constants and variables.
const (
	A = 1
	B = 2
)

const C = 3

var (
	// D is.
	D int
	E int // E is, by a line comment
	F int
	g int
)

type (
	// U is.
	U int
	V int
)
`
	parsed, err := parser.ParseFile(token.NewFileSet(), "p.go", src, parser.ParseComments|parser.SkipObjectResolution)
	require.NoError(t, err)
	var names []string
	for _, id := range undocumented(parsed) {
		names = append(names, id.Name)
	}
	require.Equal(t, []string{"Bare", "Method", "Pointer", "Bare", "C", "F", "V"}, names)
}

// undocumented lists the exported names of a file that have no doc comment. A
// comment on a group serves all its constants and variables.
func undocumented(file *ast.File) []*ast.Ident {
	var out []*ast.Ident
	for _, decl := range file.Decls {
		switch d := decl.(type) {
		case *ast.FuncDecl:
			if d.Name.IsExported() && d.Doc == nil && exportedReceiver(d) {
				out = append(out, d.Name)
			}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				out = append(out, undocumentedSpec(d, spec)...)
			}
		}
	}
	return out
}

func undocumentedSpec(d *ast.GenDecl, spec ast.Spec) []*ast.Ident {
	var out []*ast.Ident
	switch s := spec.(type) {
	case *ast.TypeSpec:
		alone := !d.Lparen.IsValid() && d.Doc != nil
		if s.Name.IsExported() && s.Doc == nil && !alone {
			out = append(out, s.Name)
		}
	case *ast.ValueSpec:
		for _, id := range s.Names {
			if id.IsExported() && d.Doc == nil && s.Doc == nil && s.Comment == nil {
				out = append(out, id)
			}
		}
	}
	return out
}

// exportedReceiver reports whether d is a function, or a method of an exported
// type.
func exportedReceiver(d *ast.FuncDecl) bool {
	if d.Recv == nil {
		return true
	}
	for typ := d.Recv.List[0].Type; ; {
		switch x := typ.(type) {
		case *ast.StarExpr:
			typ = x.X
		case *ast.IndexExpr:
			typ = x.X
		case *ast.IndexListExpr:
			typ = x.X
		case *ast.Ident:
			return x.IsExported()
		default:
			return true
		}
	}
}
