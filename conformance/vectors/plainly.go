package vectors

import (
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"
)

// maxReason bounds what is said of a line, in bytes: parts of it may be the
// line's own.
const maxReason = 300

// plainly says what the decoder says in the words of the format, not of Go.
func plainly(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errors.New("the line ends within a value")
	}
	var kind *json.UnmarshalTypeError
	if errors.As(err, &kind) {
		return wrongKind(kind)
	}
	text := strings.TrimPrefix(err.Error(), "json: ")
	if len(text) > maxReason {
		text = strings.ToValidUTF8(text[:maxReason], "") + ".."
	}
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		return fmt.Errorf("not JSON after %d bytes: %s", syntax.Offset, text)
	}
	return errors.New(text)
}

// wrongKind names the field, what it must be and what stands there.
func wrongKind(e *json.UnmarshalTypeError) error {
	field := e.Field
	for _, embedded := range []string{"rowV2.", "rowV1."} {
		field = strings.TrimPrefix(field, embedded)
	}
	if field == "" {
		field = "the line"
	}
	must := kindText(e.Type)
	got := map[string]string{"string": "text", "bool": "true or false", "array": "a list", "object": "an object", "number": "a number"}[e.Value]
	if value, ok := strings.CutPrefix(e.Value, "number "); ok {
		got = fmt.Sprintf("%.40s", value)
		must += lessThan(e.Type)
	}
	return fmt.Errorf("%s must be %s, not %s", field, must, got)
}

// kindText is what a Go type is in JSON.
func kindText(t reflect.Type) string {
	if t == nil {
		return "something else"
	}
	if reflect.PointerTo(t).Implements(reflect.TypeFor[encoding.TextUnmarshaler]()) {
		return "text"
	}
	switch t.Kind() {
	case reflect.Pointer:
		return kindText(t.Elem())
	case reflect.String:
		return "text"
	case reflect.Bool:
		return "true or false"
	case reflect.Slice, reflect.Array:
		return "a list"
	case reflect.Struct, reflect.Map:
		return "an object"
	}
	return "a number"
}

// lessThan says which numbers a type takes, where one was given that it does
// not.
func lessThan(t reflect.Type) string {
	if t == nil {
		return ""
	}
	switch t.Kind() {
	case reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uint:
		return fmt.Sprintf(" that is whole and has %d bits", t.Bits())
	case reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64, reflect.Int:
		return fmt.Sprintf(" that is whole and has %d bits with its sign", t.Bits())
	}
	return ""
}
