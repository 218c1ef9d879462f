// Package sweep holds the files of compare sweep: the result, the journal of an
// unfinished run, and the list of accepted divergences.
//
// The rule users break: a result is of one shard until merge has joined all of
// them; its counts say nothing of the other shards' calls.
package sweep
