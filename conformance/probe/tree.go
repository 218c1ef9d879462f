package probe

import (
	"strconv"
	"strings"
)

// node is a tree of additions.
type node struct {
	leaf        int
	left, right *node
}

func (n *node) size() int {
	if n.left == nil {
		return 1
	}
	return n.left.size() + n.right.size()
}

// String is the tree as a sum.
func (n *node) String() string {
	if n.left == nil {
		return strconv.Itoa(n.leaf)
	}
	return "(" + n.left.String() + "+" + n.right.String() + ")"
}

// linear lists the leaves of a fold, the first two in order of rank; false where
// the tree is none.
func (n *node) linear() ([]int, bool) {
	switch {
	case n.left == nil:
		return []int{n.leaf}, true
	case n.right.left != nil && n.left.left != nil:
		return nil, false
	}
	rest, last := n.left, n.right
	if n.right.left != nil {
		rest, last = n.right, n.left
	}
	order, ok := rest.linear()
	if len(order) == 1 && order[0] > last.leaf {
		return []int{last.leaf, order[0]}, true
	}
	return append(order, last.leaf), ok
}

// balanced lists the leaves of a tree that splits at the greatest power of two;
// false where it does not.
func (n *node) balanced() ([]int, bool) {
	if n.left == nil {
		return []int{n.leaf}, true
	}
	split := 1
	for 2*split < n.size() {
		split *= 2
	}
	a, b := n.left, n.right
	if a.size() != split || a.size() == b.size() && least(a) > least(b) {
		a, b = b, a
	}
	left, ok := a.balanced()
	right, also := b.balanced()
	return append(left, right...), ok && also && a.size() == split
}

func least(n *node) int {
	if n.left == nil {
		return n.leaf
	}
	return min(least(n.left), least(n.right))
}

func orderText(order []int) string {
	parts := make([]string, len(order))
	for i, r := range order {
		parts[i] = strconv.Itoa(r)
	}
	return strings.Join(parts, "-")
}
