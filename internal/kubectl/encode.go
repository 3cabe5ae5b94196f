package kubectl

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"

	"sigs.k8s.io/yaml"
)

// Encode writes a value for scripts, in the format of OutputJSON, as kubectl does, or OutputYAML. Nothing is
// left out of the texts of others in it, but what a terminal would act on is written as an escape sequence of
// the format.
func Encode(out io.Writer, value any, format string) error {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "    ")
	if err := encoder.Encode(value); err != nil {
		return err
	}
	encoded := escapeJSON(text.String())
	if format == OutputYAML {
		var err error
		if encoded, err = toYAML(encoded); err != nil {
			return err
		}
	}
	_, err := io.WriteString(out, encoded)
	return err
}

// hidden tells whether a character is one that Clean takes out, or makes a space of, or that YAML does not
// take; but for line ends and tabs, which both formats write in their own way.
func hidden(r rune) bool {
	if r == '\n' || r == '\t' {
		return false
	}
	return unicode.IsControl(r) || turns(r) || r == '\u2028' || r == '\u2029' || r == '\ufffe' || r == '\uffff'
}

// escapeJSON escapes what is hidden: in JSON there is nothing of that but in texts, and of control characters
// of ASCII only DEL.
func escapeJSON(text string) string {
	if !strings.ContainsFunc(text, hidden) {
		return text
	}
	var escaped strings.Builder
	for _, r := range text {
		switch {
		case !hidden(r):
			escaped.WriteRune(r)
		case r > 0xffff:
			first, second := utf16.EncodeRune(r)
			fmt.Fprintf(&escaped, `\u%04x\u%04x`, first, second)
		default:
			fmt.Fprintf(&escaped, `\u%04x`, r)
		}
	}
	return escaped.String()
}

// toYAML makes YAML of JSON. Of texts in YAML only those in quotes have escape sequences: a hidden character is
// marked, so that its text is put in quotes, and the mark is replaced there.
func toYAML(text string) (string, error) {
	var value any
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.UseNumber()
	if err := decoder.Decode(&value); err != nil {
		return "", err
	}
	value, marked := mark(value)
	if marked {
		again, err := json.Marshal(value)
		if err != nil {
			return "", err
		}
		text = string(again)
	}
	converted, err := yaml.JSONToYAML([]byte(text))
	if err != nil || !marked {
		return string(converted), err
	}
	return marks.ReplaceAllStringFunc(string(converted), func(mark string) string {
		code, _ := strconv.ParseInt(marks.FindStringSubmatch(mark)[1], 16, 32)
		if code > 0xffff {
			return fmt.Sprintf(`\U%08x`, code)
		}
		return fmt.Sprintf(`\u%04x`, code)
	}), nil
}

// A mark is written as this control character, which YAML has only in quotes and as it is spelt here, around
// the code of the character.
const (
	markCharacter = "\x01"
	markSpelt     = `\x01`
)

var marks = regexp.MustCompile(`\\x01([0-9a-f]+)\\x01`)

// mark marks what is hidden in all texts of a value as JSON decodes it, and in the names of its fields.
func mark(value any) (out any, marked bool) {
	switch value := value.(type) {
	case string:
		text := markText(value)
		return text, text != value
	case []any:
		for i := range value {
			element, is := mark(value[i])
			value[i], marked = element, marked || is
		}
		return value, marked
	case map[string]any:
		out := make(map[string]any, len(value))
		for name, field := range value {
			element, is := mark(field)
			text := markText(name)
			out[text], marked = element, marked || is || text != name
		}
		return out, marked
	}
	return value, false
}

func markText(text string) string {
	// What is spelt as a mark must not be taken for one.
	spelt := strings.Contains(text, markSpelt)
	if !spelt && !strings.ContainsFunc(text, hidden) {
		return text
	}
	var out strings.Builder
	for _, r := range text {
		if hidden(r) || spelt && r == '\\' {
			out.WriteString(markCharacter + strconv.FormatInt(int64(r), 16) + markCharacter)
			continue
		}
		out.WriteRune(r)
	}
	return out.String()
}
