package sweep

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"example.com/tandem/api"
)

// maxShards bounds what a slip of the finger asks for.
const maxShards = 1 << 16

// Shard is one of Of parts of a matrix, from 1.
type Shard struct{ Index, Of int }

// Whole is all of it.
var Whole = Shard{1, 1}

// ParseShard reads I/N.
func ParseShard(text string) (Shard, error) {
	i, n, ok := strings.Cut(text, "/")
	index, err1 := strconv.Atoi(i)
	of, err2 := strconv.Atoi(n)
	if !ok || err1 != nil || err2 != nil || index < 1 || index > of || of > maxShards {
		return Shard{}, &api.InvalidError{Field: "shard", Value: text, Reason: "not a shard", Hint: fmt.Sprintf("write I/N with 1 <= I <= N <= %d, as 2/4", maxShards)}
	}
	return Shard{index, of}, nil
}

// String is I/N.
func (s Shard) String() string { return fmt.Sprintf("%d/%d", s.Index, s.Of) }

// Has reports whether a case is in the shard.
func (s Shard) Has(i int) bool { return i%s.Of == s.Index-1 }

// Count is the number of cases of a matrix that are in the shard.
func (s Shard) Count(cases int) int { return (cases + s.Of - s.Index) / s.Of }

// MarshalJSON writes I/N.
func (s Shard) MarshalJSON() ([]byte, error) { return json.Marshal(s.String()) }

// UnmarshalJSON reads I/N.
func (s *Shard) UnmarshalJSON(b []byte) error {
	var text string
	if err := json.Unmarshal(b, &text); err != nil {
		return err
	}
	var err error
	*s, err = ParseShard(text)
	return err
}
