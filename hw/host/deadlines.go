package host

import (
	"fmt"
	"time"

	"example.com/tandem/api"
)

// Deadlines of a team that names none, and the least that can be named.
const (
	DefaultArrive   = 60 * time.Second
	DefaultProgress = 5 * time.Second
	MinDeadline     = 10 * time.Millisecond
)

// SetupLimit is more than a copy or an empty call takes.
const SetupLimit = 30 * time.Second

// Deadlines are how long the ranks of a call wait for each other to come, and how
// long for every step afterwards.
type Deadlines struct{ Arrive, Progress time.Duration }

// ReadDeadlines are those of a team, times a factor.
func ReadDeadlines(t api.TeamConfig, scale int) (Deadlines, error) {
	d := Deadlines{DefaultArrive, DefaultProgress}
	for _, one := range []struct {
		name string
		want time.Duration
		set  *time.Duration
	}{{"arrive", t.Arrive, &d.Arrive}, {"progress", t.Progress, &d.Progress}} {
		if one.want != 0 {
			*one.set = one.want
		}
		if *one.set < MinDeadline {
			return d, &api.InvalidError{Field: one.name, Value: one.want.String(), Reason: "too short a deadline", Hint: fmt.Sprintf("%v or more", MinDeadline)}
		}
		*one.set *= time.Duration(scale)
	}
	return d, nil
}
