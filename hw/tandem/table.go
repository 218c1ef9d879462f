package tandem

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"slices"
)

//go:embed table.json
var tableText []byte

// thresholds is where the ways of a call change, as bytes of a block of its lanes:
// a pure function of the GPU's name and the size of the team. They never change
// bits.
type thresholds struct {
	GPU      string `json:"gpu"`      // as the driver calls it; "" is any
	Link     string `json:"link"`     // between the GPUs measured
	Ranks    int    `json:"ranks"`    // the row is for teams of so many, or fewer
	Measured bool   `json:"measured"` // on that GPU
	Push     int64  `json:"push"`     // the largest call that is pushed
	TwoShot  int64  `json:"two_shot"` // all_reduce from there on goes in two shots
	Block    int64  `json:"block"`    // what a thread block of a direct call has to do
}

// thresholdsOf is the row of a GPU and a team: the GPU's own for that size, or else
// what holds for any, not measured.
func thresholdsOf(gpu string, ranks int) thresholds {
	rows := allThresholds()
	for _, r := range rows {
		if r.GPU != "" && r.GPU == gpu && r.Ranks == ranks {
			return r
		}
	}
	last := thresholds{}
	for _, r := range rows {
		if r.GPU == "" {
			last = r
			if ranks <= r.Ranks {
				break
			}
		}
	}
	return last
}

func allThresholds() (rows []thresholds) {
	if err := json.Unmarshal(tableText, &rows); err != nil {
		panic("hw/tandem/table.json: " + err.Error()) // it is embedded, and a test reads it
	}
	return rows
}

// Tables are the names of the GPUs that there are thresholds of, and "any".
func Tables() []string {
	names := []string{"any"}
	for _, r := range allThresholds() {
		if r.GPU != "" && !slices.Contains(names, r.GPU) {
			names = append(names, r.GPU)
		}
	}
	return names
}

// String is a row for a reader.
func (t thresholds) String() string {
	whose := "any GPU, not measured"
	if t.Measured {
		whose = t.GPU + " over " + t.Link
	}
	return fmt.Sprintf("thresholds of %s, teams of up to %d: pushed up to %d bytes of a block, all_reduce in two shots from %d, %d for each thread block that reads peers", whose, t.Ranks, t.Push, t.TwoShot, t.Block)
}

// hash tells rows apart: it is a part of every header, so that ranks that would
// choose differently find out.
func (t thresholds) hash() uint64 {
	h := fnv.New64a()
	b, _ := json.Marshal(t)
	_, _ = h.Write(b)
	return h.Sum64()
}
