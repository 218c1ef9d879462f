package vectors

import (
	"bytes"
	"compress/gzip"
	"errors"
	"hash/fnv"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"example.com/tandem/api"
	"example.com/tandem/conformance/inputs"
)

const (
	header1 = `{"format":"vectors","version":1,"library":"NVSHMEM 3.4.5","profile":"nvshmem@3.4.5","nvls":false,"hardware":"x","environment":{"A":"1"}}`
	header2 = `{"format":"vectors","version":2,"library":"L","profile":"p","nvls":true,"hardware":"","environment":{}}`
	row1    = `{"collective":"all_reduce","scope":"block","dtype":"bf16","op":"max","ranks":2,"count":1,"src_offset":0,"dst_offset":0,"in_place":false,"input":{"gen":"normal","seed":7},"out_fnv1a64":["096b8907b5f5a9e4","096b8907b5f5a9e4"],"out_hex":["a4bf","a4bf"]}`
)

func read(t *testing.T, text string) (rows []*Row, errs []error) {
	t.Helper()
	r, err := NewReader(strings.NewReader(text))
	require.NoError(t, err)
	for {
		row, err := r.Next()
		if errors.Is(err, io.EOF) {
			return rows, errs
		}
		if err != nil {
			errs = append(errs, err)
			continue
		}
		rows = append(rows, row)
	}
}

func TestReadVersion1(t *testing.T) {
	r, err := NewReader(strings.NewReader(header1 + "\n" + row1 + "\n\n"))
	require.NoError(t, err)
	require.Equal(t, Header{"vectors", 1, "NVSHMEM 3.4.5", "nvshmem@3.4.5", false, "x", map[string]string{"A": "1"}}, r.Header)
	row, err := r.Next()
	require.NoError(t, err)
	require.Equal(t, &Row{
		Line: 2,
		Call: api.Call{
			Collective: api.AllReduce, DType: api.BF16, Op: api.Max, Ranks: 2, Count: 1,
			SrcOffset: api.Offsets{0}, DstOffset: api.Offsets{0}, Scope: api.Block,
		},
		Input:  inputs.Input{Kind: inputs.Normal, Seed: 7},
		Hash:   []uint64{0x096b8907b5f5a9e4, 0x096b8907b5f5a9e4},
		Output: [][]byte{{0xa4, 0xbf}, {0xa4, 0xbf}},
		Poison: 0xff,
	}, row)
	_, err = r.Next()
	require.ErrorIs(t, err, io.EOF)
	_, err = r.Next()
	require.ErrorIs(t, err, io.EOF, "and again")
}

func TestBadRows(t *testing.T) {
	for _, c := range []struct {
		v        int
		from, to string
		want     string
	}{
		{1, `"count":1,`, ``, `count "": missing`},
		{1, `"count":1`, `"count":1099511627777`, "out of range"},
		{1, `"count":1`, `"count":1.5`, "must be a number"},
		{1, `"count":1`, `"count":-1`, "out of range"},
		{1, `"ranks":2`, `"ranks":1025`, "out of range"},
		{1, `"ranks":2`, `"ranks":3`, "wrong number of entries"},
		{1, `"dtype":"bf16"`, `"dtype":"bf17"`, "unknown"},
		{1, `"op":"max",`, ``, "not defined"},
		{1, `"op":"max"`, `"op":"xor"`, "not defined"},
		{1, `"scope":"block",`, ``, "unknown"},
		{1, `all_reduce`, `all_to_none`, "unknown"},
		{1, `"in_place":false`, `"in_place":"start"`, "no such in-place form"},
		{1, `"in_place":false`, `"in_place":1`, "in_place must be"},
		{1, `"input":{"gen":"normal","seed":7},`, ``, "missing"},
		{1, `"gen":"normal","seed":7`, `"gen":"file","dir":"/etc"`, "cannot name files"},
		{1, `bf16`, `i16`, "not defined on i16"},
		{1, `096b8907b5f5a9e4"]`, `096b8907b5f5a9e"]`, "no hash"},
		{1, `096b8907b5f5a9e4"]`, `096b8907b5f5a9e5"]`, "its hash is not the one"},
		{1, `a4bf"]`, `a4b"]`, "out_hex"},
		{1, `a4bf"]`, `a4bfa4"]`, "3 bytes"},
		{1, `"dst_offset":0`, `"dst_offset":[0,1]`, "belong to version 2"},
		{1, `"scope"`, `"root":0,"scope"`, "unknown field"},
		{1, `"scope"`, `"x":0,"scope"`, "unknown field"},
		{1, `"a4bf"]}`, `"a4bf"]}{}`, "something follows"},
		{1, `"a4bf"]}`, `"a4bf"]`, "ends within"},
		{2, `"scope"`, `"root":1,"scope"`, "has no root"},
		{2, `"scope"`, `"team":"none","scope"`, "unknown"},
		{2, `"scope"`, `"poison":256,"scope"`, "must be a number"},
		{2, `"scope"`, `"unwritten":[1],"scope"`, "wrong number of entries"},
		{2, `"scope"`, `"unwritten":[1,-1],"scope"`, "negative"},
		{2, `"scope"`, `"guard_hits":[-1,0],"scope"`, "negative"},
		{2, `"scope"`, `"block_fnv1a64":[["0000000000000000","0000000000000000"],[]],"scope"`, "wrong number of entries"},
		{2, `"scope"`, `"lanes":["1"],"scope"`, "has one lane"},
		{2, `"scope"`, `"fault":{"kind":"hang","rank":0,"cta":0,"detail":""},"scope"`, "has no outputs"},
		{2, `"collective":"all_reduce"`, `"collective":"all_gather_many","lanes":["1099511627776","1099511627776"]`, "takes no op"},
	} {
		head := header1
		if c.v == 2 {
			head = header2
		}
		require.Contains(t, row1, c.from)
		rows, errs := read(t, head+"\n"+row1+"\n"+strings.Replace(row1, c.from, c.to, 1)+"\n"+row1)
		require.Len(t, rows, 2, "the rows around a bad one are read")
		require.Len(t, errs, 1, c.to)
		require.ErrorContains(t, errs[0], "line 3: ")
		require.ErrorContains(t, errs[0], c.want)
		require.ErrorIs(t, errs[0], api.ErrInvalid)
	}
}

func TestBadFiles(t *testing.T) {
	for text, want := range map[string]string{
		"":                                 "empty",
		"\n\n":                             "empty",
		"{}":                               "not a vector file",
		"hello\n":                          "invalid character",
		"\x1f\x8b":                         "compressed data",
		`{"format":"vectors","version":3}`: "this reader knows versions 1 to 2",
		`{"format":"vectors","version":0}`: "this reader knows versions 1 to 2",
		`{"format":"vectors","version":1,"x":"y"}`: "unknown field",
	} {
		_, err := NewReader(strings.NewReader(text))
		require.ErrorContains(t, err, want, text)
		require.ErrorIs(t, err, api.ErrInvalid)
	}
	_, err := Open(filepath.Join(t.TempDir(), "none"))
	require.ErrorIs(t, err, api.ErrInvalid)
}

func TestTruncatedGzip(t *testing.T) {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, _ = z.Write([]byte(header1 + "\n" + strings.Repeat(row1+"\n", 50)))
	require.NoError(t, z.Close())
	rows, errs := read(t, b.String())
	require.Len(t, rows, 50)
	require.Empty(t, errs)
	_, errs = read(t, b.String()[:b.Len()-10])
	require.NotEmpty(t, errs)
	require.ErrorContains(t, errs[len(errs)-1], "unexpected EOF")
}

// endless is a line that never ends.
type endless struct{ n int }

func (e *endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'x'
	}
	e.n += len(p)
	return len(p), nil
}

func TestEndlessLine(t *testing.T) {
	e := &endless{}
	_, err := NewReader(e)
	require.ErrorContains(t, err, "longer than")
	require.Less(t, e.n, MaxLine+1<<20, "and reading stopped there")
}

func ptr[T any](v T) *T { return &v }

func TestWriteAndReadBack(t *testing.T) {
	rows := []*Row{
		{
			Call: api.Call{
				Collective: api.ReduceScatter, DType: api.I32, Op: api.Sum, Ranks: 2, Count: 2, InPlace: api.InPlaceStart,
				SrcOffset: api.Offsets{1, 2}, DstOffset: api.Offsets{1, 2}, Team: api.SubTeam, Mode: "f32",
			},
			Input: inputs.Input{Kind: inputs.Values, Values: []uint64{1, 2}}, Poison: 0x5a,
			Hash: []uint64{uint64(NewHash().Add(make([]byte, 8))), 5}, Output: [][]byte{make([]byte, 8), nil},
			Blocks: [][]uint64{nil, {7}}, Unwritten: []*int64{ptr(int64(1)), nil}, GuardHits: []int64{0, 3}, MS: 0.25,
		},
		{
			Call: api.Call{
				Collective: api.AllGatherMany, DType: api.F32, Ranks: 2, Scope: api.Warp, SrcOffset: api.Offsets{0}, DstOffset: api.Offsets{0},
				Many: []api.LaneShape{{DType: api.F32, Count: 3}, {DType: api.U8, Count: 0}},
			},
			Input: inputs.Input{Kind: inputs.Bits, Seed: 3}, Poison: 0xff,
			Fault: &api.Fault{Kind: api.FaultHang, Rank: 1, CTA: 2, Detail: "d"},
		},
		{
			Call:  api.Call{Collective: api.Broadcast, DType: api.E4M3, Ranks: 3, Count: 0, Root: 2, SrcOffset: api.Offsets{0}, DstOffset: api.Offsets{0}},
			Input: inputs.Input{Kind: inputs.Uniform, Lo: -1, Hi: 2, Seed: 3}, Poison: 0xff,
			Hash: []uint64{fnvBasis, fnvBasis, fnvBasis}, Output: [][]byte{{}, {}, {}},
		},
	}
	for _, name := range []string{"v.jsonl", "v.jsonl.gz"} {
		path := filepath.Join(t.TempDir(), name)
		w, err := Create(path, Header{Library: "L", Profile: "nvshmem@pr131", NVLS: true})
		require.NoError(t, err)
		for _, r := range rows {
			require.NoError(t, w.Write(r))
		}
		require.NoError(t, w.Close())
		r, err := Open(path)
		require.NoError(t, err)
		require.Equal(t, Header{"vectors", 2, "L", "nvshmem@pr131", true, "", map[string]string{}}, r.Header)
		for i, want := range rows {
			got, err := r.Next()
			require.NoError(t, err)
			require.Equal(t, i+2, got.Line)
			got.Line = 0
			require.Equal(t, want, got)
		}
		_, err = r.Next()
		require.ErrorIs(t, err, io.EOF)
		require.NoError(t, r.Close())
	}
}

func TestWriteRefusesWhatCannotBeRead(t *testing.T) {
	w, err := NewWriter(io.Discard, Header{})
	require.NoError(t, err)
	c := api.Call{Collective: api.Broadcast, DType: api.U8, Ranks: 1, Count: 1}
	require.ErrorIs(t, w.Write(&Row{Call: c, Input: inputs.Input{Kind: inputs.Bits}}), api.ErrInvalid, "no hashes")
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "0"), []byte{1}, 0o600))
	require.ErrorContains(t, w.Write(&Row{Call: c, Input: inputs.Input{Kind: inputs.Files, Dir: dir}, Hash: []uint64{1}}), "cannot name files")
	_, err = Create(filepath.Join(dir, "no", "such"), Header{})
	require.ErrorIs(t, err, api.ErrInvalid)
}

func TestHasOutput(t *testing.T) {
	r := Row{Call: api.Call{Ranks: 2}}
	require.False(t, r.HasOutput())
	r.Output = [][]byte{{1}, nil}
	require.False(t, r.HasOutput())
	r.Output[1] = []byte{}
	require.True(t, r.HasOutput())
}

func TestHashes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var bufs [][]byte
		var want []uint64
		for range rapid.IntRange(0, 9).Draw(t, "buffers") {
			p := rapid.SliceOfN(rapid.Byte(), 0, 40).Draw(t, "bytes")
			h := fnv.New64a()
			h.Write(p)
			bufs = append(bufs, p)
			want = append(want, h.Sum64())
		}
		require.Equal(t, append([]uint64{}, want...), HashAll(bufs))
	})
	p := bytes.Repeat([]byte{1, 2, 3}, 4000)
	blocks := HashBlocks(p)
	require.Len(t, blocks, int(Blocks(int64(len(p)))))
	for i, h := range blocks {
		require.Equal(t, uint64(NewHash().Add(p[i*BlockBytes:min(len(p), (i+1)*BlockBytes)])), h)
	}
	require.Empty(t, HashBlocks(nil))
	require.Zero(t, Blocks(0))
}

func FuzzReader(f *testing.F) {
	f.Add([]byte(header1 + "\n" + row1))
	f.Add([]byte(header2 + "\n" + strings.Replace(row1, `"scope"`, `"lanes":["f32:1"],"fault":null,"scope"`, 1)))
	f.Add([]byte(header2 + "\n" + `{"collective":"reduce_scatter_many","scope":"warp","dtype":"f64","op":"sum","ranks":2,"lanes":["1","bf16:0"],"src_offset":[1,2],"dst_offset":1,"in_place":"start","input":{"gen":"values","values":[1,"0x2"]},"out_fnv1a64":["0000000000000000","0000000000000000"],"unwritten":[null,3],"team":"sub"}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := NewReader(bytes.NewReader(b))
		if err != nil {
			require.ErrorIs(t, err, api.ErrInvalid)
			return
		}
		for {
			row, err := r.Next()
			if errors.Is(err, io.EOF) {
				return
			}
			if err != nil {
				require.ErrorIs(t, err, api.ErrInvalid)
				continue
			}
			w, err := NewWriter(io.Discard, r.Header)
			require.NoError(t, err)
			require.NoError(t, w.Write(row), "what was read can be written")
		}
	})
}

func BenchmarkHashAll(b *testing.B) {
	bufs := make([][]byte, 4)
	for i := range bufs {
		bufs[i] = make([]byte, 1<<20)
	}
	b.SetBytes(4 << 20)
	for range b.N {
		HashAll(bufs)
	}
}
