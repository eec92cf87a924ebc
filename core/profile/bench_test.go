package profile

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// largeText is a profile of n lines of all families.
func largeText(n int) string {
	var b strings.Builder
	forms := []string{"expose-ro=/srv/data/folder%d # seen by the program", "net=ALLOW|TCP|198.51.%d.7|443|OUT", "python-import=module%d, other%[1]d",
		"env=NAME_%d=${HOST_%[1]d:-value}", "ignore=*.key%d", "unenv=SECRET_%d", "# a comment about line %d", "expose-rw=\"/srv/out %d\"", "python-api=ALLOW:os.system # %d", "net=DENY|*|10.0.0.%d|*|*"}
	for i := range n {
		k := i
		if strings.HasPrefix(forms[i%len(forms)], "net") {
			k = i % 250
		}
		fmt.Fprintf(&b, forms[i%len(forms)]+"\n", k)
	}
	return b.String()
}

func BenchmarkLoad(b *testing.B) {
	path := filepath.Join(b.TempDir(), Name)
	if err := os.WriteFile(path, []byte(largeText(10_000)), 0o600); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Load(Options{Path: path, Platform: "linux"}); err != nil {
			b.Fatal(err)
		}
	}
}
