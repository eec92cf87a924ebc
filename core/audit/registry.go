package audit

import (
	"fmt"
	"strconv"
	"strings"
)

//go:generate go run ./gen ../../bindings/guard/registry.inc

// evalEvents are judged by the eval layer, not as calls.
var evalEvents = map[string]bool{"exec": true, "compile": true}

// RegistryC returns the tables in C, for the guard.
func RegistryC() string {
	var b strings.Builder
	b.WriteString("/* Made from core/audit by go generate; do not edit. Strings are NUL-terminated, a row of NULLs ends a table. */\n\n")
	b.WriteString("#define PSB_F_OUTER 1       /* a grant carries to the doors behind it */\n")
	b.WriteString("#define PSB_F_STDLIB_FREE 2 /* not charged when the nearest Python frame is standard library */\n")
	b.WriteString("#define PSB_F_EVAL 4        /* asked by kind, as evaluated text */\n\n")

	b.WriteString("static const psb_call_row PSB_CALLS[] = {\n")
	for i, c := range Calls {
		fmt.Fprintf(&b, "    {%s, %s, %s}, /* %d */\n", quote(c.Name), quote(string(c.Category)), flags(c), i)
	}
	b.WriteString("    {NULL, NULL, 0}};\n\nstatic const psb_event_row PSB_CALL_EVENTS[] = {\n")
	for i, c := range Calls {
		if c.Event != "" && !evalEvents[c.Event] {
			fmt.Fprintf(&b, "    {%s, %d},\n", quote(c.Event), i)
		}
	}
	b.WriteString("    {NULL, 0}};\n\nstatic const psb_event_row2 PSB_FILE_EVENTS[] = {\n")
	for _, e := range FileEvents {
		fmt.Fprintf(&b, "    {%s, %s},\n", quote(e.Event), quote(e.Spec))
	}
	b.WriteString("    {NULL, NULL}};\n\nstatic const psb_shim_row PSB_CALL_SHIMS[] = {\n")
	for i, c := range Calls {
		for _, t := range c.Shim {
			fmt.Fprintf(&b, "    {%s, %s, %d},\n", quote(t.Module), quote(t.Attr), i)
		}
	}
	b.WriteString("    {NULL, NULL, 0}};\n\nstatic const psb_shim_row2 PSB_FILE_SHIMS[] = {\n")
	for _, s := range FileShims {
		fmt.Fprintf(&b, "    {%s, %s, %s},\n", quote(s.Module), quote(s.Attr), quote(s.Spec))
	}
	b.WriteString("    {NULL, NULL, NULL}};\n")
	return b.String()
}

// quote makes a C string; the tables hold plain ASCII.
func quote(s string) string { return strconv.QuoteToASCII(s) }

func flags(c Call) string {
	var f []string
	if c.Outer {
		f = append(f, "PSB_F_OUTER")
	}
	if c.StdlibFree {
		f = append(f, "PSB_F_STDLIB_FREE")
	}
	if evalEvents[c.Event] {
		f = append(f, "PSB_F_EVAL")
	}
	if f == nil {
		return "0"
	}
	return strings.Join(f, " | ")
}
