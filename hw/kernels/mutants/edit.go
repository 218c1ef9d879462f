package mutants

import (
	"fmt"
	"regexp"
	"strings"
)

// Edit changes the text of one kernel and says in how many places.
type Edit func(body string) (string, int)

// replace puts new, with the groups of a pattern, in every place of it.
func replace(pattern, new string) Edit {
	re := regexp.MustCompile(pattern)
	return func(body string) (string, int) {
		return re.ReplaceAllString(body, new), len(re.FindAllStringIndex(body, -1))
	}
}

// only is the edit in place number n, from 0, of those that the edit would
// change.
func only(n int, pattern, new string) Edit {
	re := regexp.MustCompile(pattern)
	return func(body string) (string, int) {
		all := re.FindAllStringSubmatchIndex(body, -1)
		if n >= len(all) {
			return body, 0
		}
		m := all[n]
		changed := re.ExpandString([]byte(body[:m[0]]), new, body, m)
		return string(changed) + body[m[1]:], 1
	}
}

// after is an edit of the first place of a pattern behind each place of a
// marker, at most within lines of it.
func after(marker string, within int, pattern, new string) Edit {
	mark, re := regexp.MustCompile(marker), regexp.MustCompile(pattern)
	return func(body string) (string, int) {
		var out strings.Builder
		n, from := 0, 0
		for _, at := range mark.FindAllStringIndex(body, -1) {
			end := at[1]
			for range within {
				next := strings.IndexByte(body[end:], '\n')
				if next < 0 {
					break
				}
				end += next + 1
			}
			if m := re.FindStringSubmatchIndex(body[at[1]:end]); m != nil && at[1]+m[0] >= from {
				out.WriteString(body[from : at[1]+m[0]])
				out.Write(re.ExpandString(nil, new, body[at[1]:end], m))
				from = at[1] + m[1]
				n++
			}
		}
		return out.String() + body[from:], n
	}
}

// leftToRight joins leaves one after another where the tree joins two subtrees:
// B = B op C; A = A op B becomes A = A op B; B = C; A = A op B. It does so for
// every instruction of a form whose result is the right operand of a later one.
func leftToRight(form string) Edit {
	re := regexp.MustCompile(`(?m)^\t` + regexp.QuoteMeta(form) + `\s+(%\w+), (%\w+), (%\w+);$`)
	const near = 40 // instructions of the form
	return func(body string) (string, int) {
		all := re.FindAllStringSubmatchIndex(body, -1)
		op := func(i, k int) string { return body[all[i][2*k]:all[i][2*k+1]] }
		var out strings.Builder
		n, from := 0, 0
		for i := range all {
			for j := i + 1; j < len(all) && j < i+near; j++ {
				if op(j, 1) == op(i, 1) {
					break // made anew before it was used
				}
				if op(j, 3) != op(i, 1) || op(j, 2) == op(i, 1) || op(j, 1) != op(j, 2) {
					continue
				}
				out.WriteString(body[from:all[i][0]])
				fmt.Fprintf(&out, "\t%s %s, %s, %s;\n\tmov.b32 %s, %s;", form, op(j, 1), op(j, 2), op(i, 2), op(i, 1), op(i, 3))
				from = all[i][1]
				n++
				break
			}
		}
		return out.String() + body[from:], n
	}
}

// alike makes the comparisons with a flag that follow the loads of lines hold
// always: of data, or of headers.
func alike(headers bool) Edit {
	end := `;\n`
	if headers {
		end = `; //@acquire\n`
	}
	load := regexp.MustCompile(`ld\.relaxed\.sys\.global\.v2\.b64 \{(%\w+), (%\w+)\}, \[[^\]]*\]` + end)
	const near = 600 // bytes in which both comparisons stand
	return func(body string) (string, int) {
		n, from := 0, 0
		for {
			at := load.FindStringSubmatchIndex(body[from:])
			if at == nil {
				return body, n
			}
			start := from + at[1]
			end := min(len(body), start+near)
			text := body[start:end]
			for k := 1; k <= 2; k++ {
				text, n = compareItself(text, regexp.QuoteMeta(body[from+at[2*k]:from+at[2*k+1]]), n)
			}
			body, from = body[:start]+text+body[end:], start
		}
	}
}

// compareItself finds where the upper word of a register is taken out and then
// compared, and has it compared with itself.
func compareItself(text, register string, n int) (string, int) {
	taken := regexp.MustCompile(`(?:mov\.b64\s+\{_, (%\w+)\}, ` + register + `;|shr\.u64\s+(%\w+), ` + register + `, 32;)`).FindStringSubmatch(text)
	if taken == nil {
		return text, n
	}
	word := regexp.QuoteMeta(taken[1] + taken[2])
	re := regexp.MustCompile(`(setp\.(?:eq|ne)\.[bus](?:32|64)\s+%\w+, )(?:%\w+, ` + word + `|` + word + `, %\w+);`)
	if !re.MatchString(text) {
		return text, n
	}
	return re.ReplaceAllString(text, "${1}"+taken[1]+taken[2]+", "+taken[1]+taken[2]+";"), n + 1
}

// sameHash has the comparison of a header's hash with the own one hold always: a
// comparison of what was put together from two words.
func sameHash() Edit {
	together := regexp.MustCompile(`(?m)^\t(?:or\.b64\s+(%\w+), %\w+, %\w+|mov\.b64\s+(%\w+), \{%\w+, %\w+\});$`)
	const near = 400 // bytes
	return func(body string) (string, int) {
		var out strings.Builder
		n, from := 0, 0
		for _, at := range together.FindAllStringSubmatchIndex(body, -1) {
			if at[1] < from {
				continue
			}
			k := 2
			if at[2] < 0 {
				k = 4
			}
			word := regexp.QuoteMeta(body[at[k]:at[k+1]])
			compare := regexp.MustCompile(`(setp\.(?:eq|ne)\.[bus]64\s+%\w+, )(` + word + `, %\w+|%\w+, ` + word + `);`)
			m := compare.FindStringSubmatchIndex(body[at[1]:min(len(body), at[1]+near)])
			if m == nil {
				continue
			}
			out.WriteString(body[from : at[1]+m[3]])
			fmt.Fprintf(&out, "%s, %s;", body[at[k]:at[k+1]], body[at[k]:at[k+1]])
			from = at[1] + m[1]
			n++
		}
		return out.String() + body[from:], n
	}
}

var entry = regexp.MustCompile(`(?m)^\.visible \.entry (\w+)\(`)

// kernel is the part of a module that is one kernel.
type kernel struct {
	name       string
	start, end int
}

func kernelsOf(module string) []kernel {
	var out []kernel
	for _, at := range entry.FindAllStringSubmatchIndex(module, -1) {
		if n := len(out); n > 0 {
			out[n-1].end = at[0]
		}
		out = append(out, kernel{module[at[2]:at[3]], at[0], len(module)})
	}
	return out
}

// stub keeps the head of a kernel and has it return at once.
func stub(text string) string {
	open := strings.Index(text, "\n{\n")
	if open < 0 {
		return text
	}
	return text[:open] + "\n{\n\tret;\n}\n"
}
