package api

// Contract is what two results owe each other in one element.
type Contract uint8

// The contracts, from strictest to weakest.
const (
	Exact     Contract = iota // equal bits
	OrderFree                 // equal bits, by a choice of inputs that makes every order give the same
	Faithful                  // each is one of the two neighbours of the exact result
)

// String is the name that reports use.
func (c Contract) String() string {
	return [...]string{"exact", "order_free", "faithful"}[min(c, Faithful)]
}

// MarshalText writes the name.
func (c Contract) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

// UnmarshalText reads what MarshalText writes.
func (c *Contract) UnmarshalText(text []byte) error {
	for _, known := range []Contract{Exact, OrderFree, Faithful} {
		if known.String() == string(text) {
			*c = known
			return nil
		}
	}
	return &InvalidError{Field: "contract", Value: string(text), Reason: "unknown", Hint: "known are exact, order_free and faithful"}
}

// Evidence says how an answer is known.
type Evidence string

// The kinds of evidence, from best to worst.
const (
	Recorded      Evidence = "recorded"      // equals results recorded from the real library
	Reported      Evidence = "reported"      // equals published measurements
	FromSource    Evidence = "source"        // read in source
	Reconstructed Evidence = "reconstructed" // from a description
	Assumed       Evidence = "assumed"
)

// Check is a property that an implementation promises and a sweep tests.
type Check string

// The checks.
const (
	CheckCoverage            Check = "coverage"
	CheckValue               Check = "value"
	CheckRankAgreement       Check = "rank_agreement"
	CheckRunToRun            Check = "run_to_run"
	CheckSizeInvariance      Check = "size_invariance"
	CheckPlacementInvariance Check = "placement_invariance"
	CheckLiveness            Check = "liveness"
)

// Checks lists every check.
func Checks() []Check {
	return []Check{CheckCoverage, CheckValue, CheckRankAgreement, CheckRunToRun, CheckSizeInvariance, CheckPlacementInvariance, CheckLiveness}
}
