package providers

import (
	"fmt"
	"strings"

	"github.com/pysandboxes/pysandboxes/providers/plan"
)

// Names of the variables that lead the dynamic linker to the guard. The preload object takes them away again.
const (
	preloadVariable = "LD_PRELOAD"
	bootVariable    = "PYSANDBOXES_BOOT"
)

// environ adds the two variables to the program's environment. The program's own LD_PRELOAD stays in force behind
// ours and travels along, so that it can be restored.
func environ(c Child) ([]string, error) {
	if c.Preload == "" {
		return c.Env, nil
	}
	if strings.ContainsAny(c.Preload, " :") {
		return nil, fmt.Errorf("%s: the dynamic linker reads a space or a colon as the end of a path: install the package in a folder without them", c.Preload)
	}
	original := ""
	env := make([]string, 0, len(c.Env)+2)
	for _, v := range c.Env {
		name, value, _ := strings.Cut(v, "=")
		switch name {
		case preloadVariable:
			original = value
		case bootVariable: // nobody else's to set
		default:
			env = append(env, v)
		}
	}
	load := c.Preload
	if original != "" {
		load += ":" + original
	}
	call := -1
	if c.Call != nil {
		call = plan.FDCall
	}
	return append(env,
		preloadVariable+"="+load,
		fmt.Sprintf("%s=%d:%d:%d:%s:%s", bootVariable, plan.FDBoot, plan.FDAnnounce, call, percent(c.Guard), percent(original)),
	), nil
}

// percent encodes the bytes that would end a field.
func percent(s string) string {
	var b strings.Builder
	for i := range len(s) {
		if c := s[i]; c == '%' || c == ':' || c < ' ' || c == 0x7f {
			fmt.Fprintf(&b, "%%%02X", c)
		} else {
			b.WriteByte(c)
		}
	}
	return b.String()
}
