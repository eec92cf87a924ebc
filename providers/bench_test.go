package providers_test

import (
	"testing"

	"github.com/pysandboxes/pysandboxes/providers"
)

// The time from Start to the end of a program that does nothing.
func BenchmarkStart(b *testing.B) {
	for _, c := range []struct {
		name string
		cmd  func(...string) providers.Command
	}{{"subprocess", command}, {"landlock", confined}} {
		b.Run(c.name, func(b *testing.B) {
			for b.Loop() {
				p, err := providers.Start(c.cmd("exit=0"))
				if err != nil {
					b.Fatal(err)
				}
				if s, err := p.Wait(); err != nil || s.Code != 0 {
					b.Fatal(s, err)
				}
			}
		})
	}
}
