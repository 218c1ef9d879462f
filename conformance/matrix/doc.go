// Package matrix chooses calls and runs them on two sides: the conformance
// matrix that go test and compare sweep share.
//
// [Axes] are the values to combine, as data. [Axes.Expand] gives the whole
// product, or few cases in which every pair of values meets; [For] fills in what
// two sides declare. [Run] executes cases, each side's promises checked by name,
// and makes every kind of failure as small as it stays one; [Test] is Run for a
// *testing.T. Cases, results and reports are in one order, whatever the number
// of workers.
//
// The rule users break: an axis that does not apply to a collective (an op of a
// copy) collapses, so there are fewer cases than the product of the lengths.
package matrix
