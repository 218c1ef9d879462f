package main

import (
	"encoding/xml"
	"fmt"
	"html"
	"strings"

	"example.com/tandem/cmd/compare/internal/sweep"
	"example.com/tandem/cmd/compare/internal/term"
	"example.com/tandem/conformance"
)

// htmlPage is a report as a page of its own: the text, with its emphasis.
func htmlPage(coloured string) string {
	body := html.EscapeString(coloured)
	for code, open := range map[string]string{"1": "<b>", "2": `<b class="dim">`, "31": `<b class="red">`, "32": `<b class="green">`, "0": "</b>"} {
		body = strings.ReplaceAll(body, "\x1b["+code+"m", open)
	}
	return "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<title>compare</title>\n" +
		"<style>.dim{font-weight:normal;color:#777}.red{color:#b00}.green{color:#070}</style>\n" +
		"</head>\n<body>\n<pre>\n" + body + "</pre>\n</body>\n</html>\n"
}

// junitCase is one line of a JUnit file: what was asked, and what came of it.
type junitCase struct {
	Name    string     `xml:"name,attr"`
	Class   string     `xml:"classname,attr"`
	Failure *junitText `xml:"failure"`
	Skipped *junitText `xml:"skipped"`
	Out     string     `xml:"system-out,omitempty"`
}

type junitText struct {
	Message string `xml:"message,attr"`
	Text    string `xml:",chardata"`
}

// junitSuite counts what it holds.
type junitSuite struct {
	XMLName  xml.Name    `xml:"testsuite"`
	Name     string      `xml:"name,attr"`
	Tests    int         `xml:"tests,attr"`
	Failures int         `xml:"failures,attr"`
	Skipped  int         `xml:"skipped,attr"`
	Cases    []junitCase `xml:"testcase"`
}

// junit is the suite as XML.
func junit(cases []junitCase) (string, error) {
	s := junitSuite{Name: "compare", Tests: len(cases), Cases: cases}
	for _, c := range cases {
		if c.Failure != nil {
			s.Failures++
		}
		if c.Skipped != nil {
			s.Skipped++
		}
	}
	b, err := xml.MarshalIndent(s, "", "  ")
	return xml.Header + string(b) + "\n", err
}

// junitOf are the cases of a result; false if it has no verdict.
func junitOf(value any) (cases []junitCase, ok bool) {
	switch v := value.(type) {
	case *conformance.Report:
		return junitRun(v), true
	case *sweep.Result:
		return junitSweep(v), true
	case replayed:
		return junitReplay(&v), true
	}
	return nil, false
}

func junitRun(rep *conformance.Report) []junitCase {
	c := junitCase{Name: rep.Repro, Class: "compare.run"}
	if text := reportText(rep, term.Style{}); rep.Holds() {
		c.Out = text
	} else {
		c.Failure = &junitText{fmt.Sprintf("%d outputs break the %s contract", rep.Differing.Elements, rep.Contract), text}
	}
	return []junitCase{c}
}

// junitSweep has a case for each kind of divergence and of refusal, and one for
// all calls that agree. Divergences that were expected, and all were met, are no
// failures.
func junitSweep(res *sweep.Result) []junitCase {
	var out []junitCase
	if res.Agree > 0 {
		out = append(out, junitCase{Name: fmt.Sprintf("%d of %d calls agree", res.Agree, res.Calls), Class: "compare.sweep"})
	}
	for _, f := range res.Failures {
		c := junitCase{Name: f.Again, Class: "compare.sweep." + string(f.Check)}
		text := fmt.Sprintf("%d calls like %s\nsmallest: %s\n", f.Calls, f.Found, f.Again)
		if res.Code() == exitHolds {
			c.Out = text
		} else {
			c.Failure = &junitText{fmt.Sprintf("%s %s: %d calls", f.Class, f.Cause, f.Calls), text}
		}
		out = append(out, c)
	}
	if res.Code() != exitHolds && len(res.Failures) == 0 {
		out = append(out, junitCase{Name: "the sweep", Class: "compare.sweep", Failure: &junitText{"the sweep does not hold", res.Text(term.Style{})}})
	}
	for _, r := range res.Refusals {
		out = append(out, junitCase{Name: r.First, Class: "compare.sweep", Skipped: &junitText{Message: fmt.Sprintf("%d calls: %s", r.Calls, r.Reason)}})
	}
	return out
}

func junitReplay(r *replayed) []junitCase {
	const class = "compare.replay"
	var out []junitCase
	if r.Passed > 0 {
		out = append(out, junitCase{Name: fmt.Sprintf("%d rows passed", r.Passed), Class: class})
	}
	for _, f := range r.Failures {
		out = append(out, junitCase{Name: fmt.Sprintf("line %d: %s", f.Line, f.Call.Call.String()), Class: class,
			Failure: &junitText{string(f.Cause), strings.TrimSpace(f.Where + "\n" + f.Why)}})
	}
	if more := r.Failed - len(r.Failures); more > 0 {
		out = append(out, junitCase{Name: fmt.Sprintf("%d more rows", more), Class: class, Failure: &junitText{Message: "not told one by one"}})
	}
	for _, f := range r.Unreadable {
		out = append(out, junitCase{Name: fmt.Sprintf("line %d", f.Line), Class: class, Failure: &junitText{Message: f.Reason}})
	}
	for _, f := range r.Refusals {
		out = append(out, junitCase{Name: fmt.Sprintf("line %d", f.Line), Class: class, Skipped: &junitText{Message: f.Reason}})
	}
	return out
}
