package learn

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/pysandboxes/pysandboxes/core/audit"
)

func TestGradesForReviewers(t *testing.T) {
	for name, want := range map[string]Risk{"API_KEY": High, "DATABASE_URL": Medium, "PATH": Medium, "LANG": Low} {
		risk, _ := GradeVariable(name)
		assert.Equal(t, want, risk, name)
	}
	for _, c := range audit.Categories {
		risk, why := GradeCategory(c)
		assert.Equal(t, risk == Low, why == "", "%s", c)
	}
	for name, want := range map[string]Risk{"ctypes.util": High, "gc": Medium, "json": Low} {
		risk, _ := GradeImport(name)
		assert.Equal(t, want, risk, name)
	}
	for path, want := range map[string]bool{"/": true, "/etc": true, "/home": true, "/home/ann": true, "/home/ann/.ssh": true, "/home/ann/work": false, "/data": false} {
		assert.Equal(t, want, Wholesale(path, "/home/ann"), path)
	}
	for path, want := range map[string]bool{"/home/ann/.ssh": true, "/home/ann/.ssh/config": true, "/w/.env": true, "/w/a.pem": true, "/w/env": false, "/w/data": false} {
		assert.Equal(t, want, SecretPath(path), path)
	}
	assert.True(t, RunLater("/w/.venv/x", false))
	assert.True(t, RunLater("/home/ann/.bashrc", true))
	assert.False(t, RunLater("/w/out", false))
}
