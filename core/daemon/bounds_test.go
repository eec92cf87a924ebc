package daemon

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestTheLimitBehindAnException(t *testing.T) {
	all := bounds{memory: "M", cpu: "C", processes: "P", files: "F"}
	const says = "the sandbox is bounded by "
	for _, c := range []struct {
		held                      bounds
		module, qualname, message string
		want                      string
	}{
		{all, "builtins", "MemoryError", "", says + "M"},
		{all, "builtins", "MemoryError", "Unable to allocate 8 GiB", says + "M"},
		{all, "builtins", "OSError", "[Errno 12] Cannot allocate memory", says + "M"},
		{all, "builtins", "OSError", "[Errno 24] Too many open files: '/x'", says + "F"},
		{all, "builtins", "BlockingIOError", "[Errno 11] Resource temporarily unavailable", says + "P"},
		{all, "builtins", "RuntimeError", "can't start new thread", says + "P and M"},
		{bounds{memory: "M"}, "builtins", "RuntimeError", "can't start new thread", says + "M"},
		{bounds{files: "F"}, "builtins", "MemoryError", "", ""},
		{bounds{}, "builtins", "OSError", "[Errno 24] Too many open files", ""},
		{all, "builtins", "OSError", "[Errno 2] No such file or directory: '[Errno 24]'", ""},
		{all, "builtins", "RuntimeError", "can't start", ""},
		{all, "app", "MemoryError", "", ""},
	} {
		assert.Equal(t, c.want, c.held.ofException(c.module, c.qualname, c.message), "%s: %s", c.qualname, c.message)
	}
}

func TestAnEndByALimitNamesIt(t *testing.T) {
	assert.EqualError(t, &EndedError{Pid: 7, Limit: "limit-cpu=1s, p:2"}, "the sandbox (process 7) was ended by limit-cpu=1s, p:2")
	assert.EqualError(t, &EndedError{Pid: 7, Asked: true, Late: true}, "the sandbox was ended: another of its calls was over its time")
	assert.ErrorContains(t, &StartError{Limit: "limit-memory=1MB, p:1"}, "too little for an interpreter: limit-memory=1MB, p:1")
}
