package learn

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestModulesThatNobodyFound(t *testing.T) {
	imported := func(name string, process int) Observation {
		return Observation{Family: FamilyImport, Op: "import", Subject: name, Process: process}
	}
	r := New(newProject(t).options())
	for _, o := range []Observation{imported("json", 1), imported("nowhere", 1), imported("late", 1), imported("elsewhere", 1), imported("elsewhere", 2)} {
		r.Add(o)
	}
	for _, name := range []string{"nowhere", "late", "unheard"} {
		r.Absent(name, 1)
	}
	r.Absent("elsewhere", 2)
	r.Add(imported("late", 1))
	rules, _ := lines(r.Result())
	assert.ElementsMatch(t, []string{"python-import=json", "python-import=late", "python-import=elsewhere"}, rules)
}
