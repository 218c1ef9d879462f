package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// TestGenerated runs the generator again and compares with what is committed.
func TestGenerated(t *testing.T) {
	dir := t.TempDir()
	asm, stubs := filepath.Join(dir, "kernels_amd64.s"), filepath.Join(dir, "kernels_amd64.go")
	out, err := exec.Command("go", "run", ".", "-out", asm, "-stubs", stubs, "-pkg", "arith").CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for _, name := range []string{asm, stubs} {
		if !bytes.Equal(body(t, name), body(t, filepath.Join("..", filepath.Base(name)))) {
			t.Errorf("%s is not what the generator writes: run go generate in sim/arith", filepath.Base(name))
		}
	}
}

// body is a file without its first line, which repeats the command line.
func body(t *testing.T, name string) []byte {
	p, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := bytes.Cut(p, []byte("\n"))
	return rest
}
