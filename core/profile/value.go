package profile

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pysandboxes/pysandboxes/core/nearest"
)

// separator is what divides the items of a kind, 0 for none.
func (k Kind) separator() byte {
	switch k {
	case List, Paths:
		return ','
	case Fields:
		return '|'
	}
	return 0
}

// check holds a rule against the grammar of its key. Fields, names and functions are the business of core/policy.
func (k Key) check(r *Rule) *SyntaxError {
	ok, hint, n := true, "The form is "+k.Grammar+".", int64(1)
	switch k.Kind {
	case Bool:
		_, ok = ParseBool(r.Value)
	case Choice:
		_, ok = k.choice(r.Value)
		if near := nearest.Word(r.Value, k.Choices); !ok && near != "" {
			hint = "Did you mean " + near + "? " + hint
		}
	case Count:
		n, ok = whole(ParseCount(r.Value))
	case Size:
		n, ok = whole(ParseSize(r.Value))
	case Duration:
		n, ok = whole(ParseDuration(r.Value))
	case Env:
		return nil
	case Text, List, Fields, Paths:
		ok = k.EmptyOK || slices.ContainsFunc(r.Items, func(it string) bool { return it != "" })
		if !ok {
			return r.fail(r.Key+" needs a value", hint)
		}
		if on, isBool := ParseBool(r.Value); r.Key == "learn" && isBool && on {
			return r.fail("learn=true does not say where to", "Name the file to learn into, or write learn=false to lock the profile.")
		}
	}
	if n == 0 && ok && k.Family == FamilyLimits { // inside, 0 is no limit
		return r.fail(r.Key+"=0 would leave nothing to run with", "Leave the line out for no limit, or write a larger one. "+hint)
	}
	if !ok {
		return r.fail(strconv.Quote(r.Value)+" is not a value of "+r.Key, hint)
	}
	return nil
}

// whole makes one kind of the numbers that are parsed.
func whole[T ~int64](n T, ok bool) (int64, bool) { return int64(n), ok }

func (k Key) choice(value string) (string, bool) {
	for _, c := range k.Choices {
		if c == value {
			return c, true
		}
	}
	return "", false
}

// ParseBool reads true or false.
func ParseBool(s string) (value, ok bool) {
	switch strings.ToLower(s) {
	case "true":
		return true, true
	case "false":
		return false, true
	}
	return false, false
}

// ParseCount reads a whole number that is not negative; `_` may divide its digits.
func ParseCount(s string) (int64, bool) {
	if s == "" || strings.HasPrefix(s, "_") || strings.HasSuffix(s, "_") || strings.Contains(s, "__") {
		return 0, false
	}
	n, err := strconv.ParseUint(strings.ReplaceAll(s, "_", ""), 10, 63)
	return int64(n), err == nil
}

// sizes are the units of ParseSize. KB, MB, GB mean powers of 1024, as in `ulimit` and Python's tools for memory.
var sizes = []struct {
	unit   string
	factor int64
}{{"kib", 1 << 10}, {"mib", 1 << 20}, {"gib", 1 << 30}, {"kb", 1 << 10}, {"mb", 1 << 20}, {"gb", 1 << 30}, {"b", 1}, {"", 1}}

// ParseSize reads a number of bytes: 512MB, 64KiB, 1_000_000.
func ParseSize(s string) (int64, bool) {
	low := strings.ToLower(strings.TrimSpace(s))
	for _, u := range sizes {
		if number, found := strings.CutSuffix(low, u.unit); found {
			n, ok := ParseCount(strings.TrimRight(number, " "))
			if !ok || n > math.MaxInt64/u.factor {
				return 0, false
			}
			return n * u.factor, true
		}
	}
	return 0, false
}

// durations are the units of ParseDuration. A number alone is seconds.
var durations = []struct {
	unit string
	each time.Duration
}{{"ms", time.Millisecond}, {"s", time.Second}, {"m", time.Minute}, {"h", time.Hour}, {"", time.Second}}

// ParseDuration reads a time: 250ms, 10s, 1.5s, 2m.
func ParseDuration(s string) (time.Duration, bool) {
	low := strings.ToLower(strings.TrimSpace(s))
	for _, u := range durations {
		if number, found := strings.CutSuffix(low, u.unit); found {
			number = strings.TrimRight(number, " ")
			if number == "" || strings.Trim(number, "0123456789.") != "" {
				return 0, false
			}
			f, err := strconv.ParseFloat(number, 64)
			if err != nil || f*float64(u.each) >= math.MaxInt64 {
				return 0, false
			}
			return time.Duration(f * float64(u.each)), true
		}
	}
	return 0, false
}
