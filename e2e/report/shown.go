package report

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// seconds shows a duration without its unit, so that columns compare at a glance.
func seconds(d time.Duration) string {
	switch {
	case d == Never:
		return "never"
	case d.Abs() < 100*time.Millisecond:
		return strconv.FormatFloat(d.Seconds(), 'f', 3, 64)
	case d.Abs() < 100*time.Second:
		return strconv.FormatFloat(d.Seconds(), 'f', 2, 64)
	default:
		return strconv.FormatFloat(d.Seconds(), 'f', 0, 64)
	}
}

// Shown shows a duration with its unit; Never is "never".
func Shown(d time.Duration) string {
	if d == Never {
		return "never"
	}
	return seconds(d) + " s"
}

// took shows how long something lasted that may be hours.
func took(d time.Duration) string {
	if d < 100*time.Second {
		return fmt.Sprintf("%.1f s", d.Seconds())
	}
	return d.Round(time.Second).String()
}

// clean replaces what neither XML nor HTML can hold. Line ends and tabs stay.
func clean(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return r
		case unicode.IsControl(r), r == 0xFFFE, r == 0xFFFF:
			return utf8.RuneError
		default:
			return r
		}
	}, strings.ToValidUTF8(s, string(utf8.RuneError)))
}
