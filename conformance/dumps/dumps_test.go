package dumps

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/tandem/api"
)

// npy is a file as numpy.save writes it.
func npy(version byte, dict string, data []byte) []byte {
	var b bytes.Buffer
	b.WriteString(npyMagic)
	b.Write([]byte{version, 0})
	head := dict + strings.Repeat(" ", 10) + "\n"
	if version == 1 {
		_ = binary.Write(&b, binary.LittleEndian, uint16(len(head)))
	} else {
		_ = binary.Write(&b, binary.LittleEndian, uint32(len(head)))
	}
	b.WriteString(head)
	b.Write(data)
	return b.Bytes()
}

func TestParseHeader(t *testing.T) {
	for _, c := range []struct {
		dict  string
		descr string
		shape []int64
	}{
		{`{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }`, "<f4", []int64{3, 4}},
		{`{'descr': '|u1', 'fortran_order': False, 'shape': (7,), }`, "|u1", []int64{7}},
		{`{"shape":(),"fortran_order":True,"descr":"<V2"}`, "<V2", []int64{}},
		{`{'descr': '|V2', 'fortran_order': True, 'shape': (5,)}`, "|V2", []int64{5}},
		{`{'descr': '<i8', 'fortran_order': False, 'shape': (0, 9)}`, "<i8", []int64{0, 9}},
	} {
		for _, v := range []byte{1, 2, 3} {
			h, err := ParseHeader(bytes.NewReader(npy(v, c.dict, nil)))
			require.NoError(t, err, c.dict)
			require.Equal(t, c.descr, h.Descr)
			require.Equal(t, c.shape, h.Shape)
			require.Equal(t, int64(len(npy(v, c.dict, nil))), h.Offset)
		}
	}
}

func TestParseHeaderRefuses(t *testing.T) {
	good := `{'descr': '<f4', 'fortran_order': False, 'shape': (3,), }`
	for _, c := range []struct{ from, to, want string }{
		{"'<f4'", "'>f4'", "big-endian"},
		{"'<f4'", "'<c8'", "not supported"},
		{"'<f4'", "'|O'", "not supported"},
		{"'<f4'", "'|f4'", "not supported"},
		{"'<f4'", "'<f1'", "not supported"},
		{"'<f4'", "'<f3'", "not supported"},
		{"'<f4'", "'=f4'", "not supported"},
		{"'<f4'", "[('a', '<f4')]", "malformed descr"},
		{"False, 'shape': (3,)", "True, 'shape': (3, 4)", "Fortran"},
		{"(3,)", "(3)", "malformed shape"},
		{"(3,)", "(-3,)", "malformed shape"},
		{"(3,)", "(9223372036854775808,)", "malformed shape"},
		{"(3,)", "(4611686018427387904, 4)", "too large"},
		{"(3,)", "(" + strings.Repeat("1, ", 65) + ")", "malformed shape"},
		{"'shape': (3,), ", "", "malformed"},
		{"'descr'", "'shape': (1,), 'descr'", "malformed"},
		{"'descr'", "'x': 'y', 'descr'", "unknown key"},
		{"}", "} x", "malformed"},
		{"}", "", "malformed"},
		{"{", "", "no dictionary"},
		{"False", "0", "malformed fortran_order"},
		{"'<f4', ", "'<f4' ", "malformed"},
	} {
		_, err := ParseHeader(bytes.NewReader(npy(1, strings.Replace(good, c.from, c.to, 1), nil)))
		require.ErrorContains(t, err, c.want, "%s -> %s", c.from, c.to)
	}
	whole := npy(1, good, nil)
	for n := range whole {
		_, err := ParseHeader(bytes.NewReader(whole[:n]))
		require.Error(t, err, "%d bytes", n)
	}
	_, err := ParseHeader(bytes.NewReader(npy(4, good, nil)))
	require.ErrorContains(t, err, "format 4.0")
	huge := append([]byte(npyMagic), 2, 0, 0xff, 0xff, 0xff, 0xff)
	_, err = ParseHeader(bytes.NewReader(huge))
	require.ErrorContains(t, err, "header of 4294967295 bytes")
}

func FuzzParseHeader(f *testing.F) {
	f.Add(npy(1, `{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }`, []byte{1}))
	f.Add(npy(2, `{'descr': '|u1', 'fortran_order': True, 'shape': (), }`, nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		h, err := ParseHeader(bytes.NewReader(b))
		if err != nil {
			return
		}
		require.GreaterOrEqual(t, h.Bytes(), int64(0))
		require.LessOrEqual(t, h.Offset, int64(len(b)))
		for _, d := range api.DTypes() {
			require.False(t, h.Fits(d) && d.Size() != h.Size)
		}
	})
}

func TestFits(t *testing.T) {
	for descr, want := range map[string]string{
		"<f2": "[f16]", "<f4": "[f32]", "<f8": "[f64]", "<i2": "[i16]", "|i1": "[i8]",
		"<u2": "[bf16 f16 i16 u16]", "|u1": "[e4m3 e5m2 i8 u8]", "<V2": "[bf16 f16 i16 u16]", "|V1": "[e4m3 e5m2 i8 u8]",
	} {
		h, err := ParseHeader(bytes.NewReader(npy(1, fmt.Sprintf("{'descr': '%s', 'fortran_order': False, 'shape': (1,)}", descr), nil)))
		require.NoError(t, err)
		var fit []api.DType
		for _, d := range api.DTypes() {
			if h.Fits(d) {
				fit = append(fit, d)
			}
		}
		require.Equal(t, want, fmt.Sprint(fit), descr)
	}
}

func write(t *testing.T, files map[string][]byte) string {
	dir := t.TempDir()
	for name, b := range files {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), b, 0o600))
	}
	return dir
}

func TestDir(t *testing.T) {
	files := map[string][]byte{".hidden": {1}}
	for r := range 12 {
		files[fmt.Sprintf("dump2-rank%d.bin", r)] = []byte{byte(r), 0, byte(r), 1}
	}
	files["dump2-rank3.bin"] = nil
	delete(files, "dump2-rank3.bin")
	files["x03.npy"] = npy(1, "{'descr': '<u2', 'fortran_order': False, 'shape': (2,)}", []byte{3, 0, 3, 1})
	d, err := Open(write(t, files))
	require.NoError(t, err)
	require.Equal(t, 12, d.Ranks())
	c := &api.Call{Collective: api.AllReduce, DType: api.BF16, Op: api.Sum, Ranks: 12, Count: 2}
	require.NoError(t, d.Check(c, c.DstElems))
	for r := range 12 {
		p := make([]byte, 2)
		require.NoError(t, d.ReadAt(r, p, 2))
		require.Equal(t, []byte{byte(r), 1}, p, "rank10 comes after rank9")
	}
	require.ErrorIs(t, d.ReadAt(0, make([]byte, 4), 2), api.ErrInvalid, "beyond the end")
	c.DType = api.I32
	c.Count = 1
	require.ErrorContains(t, d.Check(c, c.DstElems), "its type is <u2, the call's is i32")
	c.Ranks = 11
	require.ErrorContains(t, d.Check(c, c.DstElems), "holds 12 ranks, the call has 11")
}

func TestOpenRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		files map[string][]byte
		want  string
	}{
		"no number": {map[string][]byte{"a.bin": {}}, "no rank"},
		"gap":       {map[string][]byte{"r0": {}, "r2": {}}, "none of them is rank 1"},
		"twice":     {map[string][]byte{"a0.bin": {}, "b0.bin": {}}, "is rank 0 too"},
		"too many":  {map[string][]byte{"r1024": {}}, "out of range"},
		"huge":      {map[string][]byte{"r99999999999999999999": {}}, "out of range"},
		"not npy":   {map[string][]byte{"r0.npy": []byte("x")}, "not a .npy file"},
		"short npy": {map[string][]byte{"r0.npy": npy(1, "{'descr': '<u2', 'fortran_order': False, 'shape': (2,)}", []byte{1})}, "its header says"},
		"nothing":   {nil, "holds no dumps"},
	} {
		_, err := Open(write(t, c.files))
		require.ErrorContains(t, err, c.want, name)
		require.ErrorIs(t, err, api.ErrInvalid)
	}
	dir := write(t, nil)
	require.NoError(t, os.Mkdir(filepath.Join(dir, "r0"), 0o700))
	_, err := Open(dir)
	require.ErrorContains(t, err, "not a regular file")
	_, err = Open(filepath.Join(dir, "none"))
	require.ErrorIs(t, err, api.ErrInvalid)
}
