package supervisor

import (
	"fmt"
	"io"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/pysandboxes/pysandboxes/core/daemon"
	"github.com/pysandboxes/pysandboxes/core/learn"
)

// silence is after how long without a word on the terminal a learning run says that it goes on. The kernel notes when a terminal
// was last written to by eight seconds (tty_update_time), so that it may be a little more.
const silence = 30 * time.Second

// progress gives when to tell that a learning run goes on, and how: to a person who waits before a terminal, and to nobody else.
func progress(plan *daemon.Plan, stderr io.Writer) (<-chan time.Time, func()) {
	if !plan.Learning() || !isTerminal(2) {
		return nil, nil
	}
	return time.NewTicker(silence).C, func() {
		var st unix.Stat_t
		if unix.Fstat(2, &st) == nil && time.Since(time.Unix(st.Mtim.Unix())) >= silence {
			fmt.Fprintf(stderr, "python-sb: still learning: %s so far; Ctrl-C ends the program and writes what it needs\n", counts(plan.Seen()))
		}
	}
}

// counts says how much was seen of what, in the order of a profile.
func counts(seen map[string]int) string {
	var out []string
	for _, f := range []struct{ family, one, more string }{
		{learn.FamilyFile, "file", "files"}, {learn.FamilyNet, "network address", "network addresses"},
		{learn.FamilyImport, "import", "imports"}, {learn.FamilyCall, "call", "calls"},
	} {
		switch n := seen[f.family]; n {
		case 0:
		case 1:
			out = append(out, "1 "+f.one)
		default:
			out = append(out, fmt.Sprintf("%d %s", n, f.more))
		}
	}
	if out == nil {
		return "nothing"
	}
	return strings.Join(out, ", ")
}
