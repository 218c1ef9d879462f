package figure

import (
	"encoding/json"
	"fmt"
	"slices"
)

// rlReport is RL-Kernel's report. It times eager launches, and calls the size of
// a shard the input of a rank, also of a reduce_scatter, whose input is as many
// times that as there are ranks.
type rlReport struct {
	Kind  string  `json:"kind"`
	World int     `json:"world_size"`
	DType string  `json:"dtype"`
	GPU   string  `json:"gpu"`
	Rows  []rlRow `json:"rows"`
}

type rlRow struct {
	Operation     string  `json:"operation"`
	Bytes         int64   `json:"input_bytes_per_rank"`
	Deterministic float64 `json:"deterministic_us"`
	NCCL          float64 `json:"nccl_us"`
}

// rlTypes are the names that it has for types.
var rlTypes = map[string]string{
	"bf16": "bf16", "bfloat16": "bf16", "torch.bfloat16": "bf16", "fp16": "f16", "float16": "f16", "torch.float16": "f16",
	"fp32": "f32", "float32": "f32", "torch.float32": "f32",
}

// rlOps are the operations of those that reduce.
var rlOps = map[string]string{"all_reduce": "sum", "reduce_scatter": "sum", "reduce_scatter_many": "sum"}

func ofRL(text []byte) ([]Source, error) {
	var r rlReport
	if err := json.Unmarshal(text, &r); err != nil {
		return nil, fmt.Errorf("it cannot be read: %w", err)
	}
	dtype, ok := rlTypes[r.DType]
	if !ok || r.World < 1 || r.World > 1<<16 {
		return nil, fmt.Errorf("dtype %q or world size %d is none that the benchmark has", r.DType, r.World)
	}
	var out []Source
	for _, row := range r.Rows {
		i := slices.IndexFunc(out, func(s Source) bool { return s.Collective == row.Operation })
		if i < 0 {
			i = len(out)
			out = append(out, Source{Collective: row.Operation, Launch: "eager", DType: dtype, GPU: r.GPU, World: r.World, Note: rlOps[row.Operation], Label: "RL-Kernel", Reference: "NCCL"})
		}
		bytes := row.Bytes
		if row.Operation == "reduce_scatter" || row.Operation == "reduce_scatter_many" {
			if bytes < 0 || bytes > 1<<40 {
				return nil, fmt.Errorf("%d bytes are no size", bytes)
			}
			bytes *= int64(r.World)
		}
		out[i].Rows = append(out[i].Rows, Row{bytes, row.Deterministic, row.NCCL})
	}
	return out, nil
}
