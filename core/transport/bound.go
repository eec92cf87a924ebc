package transport

import (
	"encoding/json"

	"github.com/pysandboxes/pysandboxes/core/wire"
)

// An exception that a limit of the profile caused says nothing of the profile: MemoryError has no text at all. Which line it was is
// this side's to say; a child that lies about the exception gets a true line of its own profile named, and no more.

type (
	vouchFunc = func(layer, family, op, subject string) (wire.Denial, bool)
	boundFunc = func(module, qualname, message string) string
)

// since is the text that was written last, from this place on.
func (t *transcriber) since(from int) string {
	if t.bound == nil {
		return ""
	}
	var text string
	_ = json.Unmarshal(t.out.Bytes()[from:], &text) // our own JSON of a text
	return text
}

// limited adds the limit that an exception comes from to its descriptor, which is written but for its end.
func (t *transcriber) limited(said map[string]string) {
	if t.bound == nil || len(said) == 0 {
		return
	}
	if line := t.bound(said["module"], said["qualname"], said["message"]); line != "" {
		t.out.WriteString(`,"limit":`)
		_ = t.quoted(line) // a text has a JSON form
	}
}
