package daemon

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/pysandboxes/pysandboxes/core/broker"
)

// A program that is refused chooses the name that the refusal bears.
func TestARefusedNameDoesNotSpeakInOurVoice(t *testing.T) {
	for name, want := range map[string]string{
		"/bin/true":                            "exec of /bin/true (",
		"/x\npython-sb: all is well\x1b]0;t\a": `exec of "/x\npython-sb: all is well\x1b]0;t\x07" (`,
	} {
		d := nativeDenial(broker.Denial{Op: "exec", Subject: name})
		assert.Contains(t, d.Message, want)
		assert.Equal(t, name, d.Subject)
		assert.Equal(t, 1, strings.Count(d.Message, "\n"), "the one before the line to add")
	}
}
