package learn

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// killed lets go of a recorder's files as the end of its process does.
func killed(r *Recorder) { r.journal.file.Close() }

func TestWhatAKilledRunSawIsLearnedByTheNext(t *testing.T) {
	p := newProject(t)
	o := p.options()
	o.Journal = p.outside + "/state/learning/0123"
	data, more := p.file(p.dir+"/data/1"), p.file(p.dir+"/more/1")
	first := New(o)
	first.Passed(p.outside, false)
	first.Add(read(data))
	first.Add(Observation{Family: FamilyImport, Op: "import", Subject: "json", Process: 7})
	first.Add(Observation{Family: FamilyImport, Op: "import", Subject: "nowhere", Process: 7})
	first.Absent("nowhere", 7)

	beside := New(o)
	assert.Zero(t, beside.Former(), "its run is still there")
	beside.Add(read(more))

	cut := first.journal.file.Name()
	killed(first)
	f, err := os.OpenFile(cut, os.O_WRONLY|os.O_APPEND, 0)
	require.NoError(t, err)
	_, err = f.Write([]byte{0x8a, 0xa6, 'F'}) // an entry that the end cut short
	require.NoError(t, err)
	f.Close()

	second := New(o)
	assert.Equal(t, 5, second.Former())
	second.Add(native(did("scandir", p.outside, false)))
	rules, _ := lines(second.Result())
	assert.Equal(t, []string{"expose-ro=./data", "python-import=json"}, rules)
	second.Add(read(p.file(p.dir + "/third/1")))
	killed(second)
	for _, f := range second.journal.former {
		f.Close()
	}

	third := New(o)
	rules, _ = lines(third.Result())
	assert.Equal(t, []string{"expose-ro=./data", "expose-ro=./third", "python-import=json"}, rules, "of both")
	third.Written()
	third.Written()
	assert.Len(t, left(t, o.Journal), 1, "the one whose run goes on")
	beside.Written()
	assert.Empty(t, left(t, o.Journal))
	assert.Zero(t, New(o).Former())
}

func left(t *testing.T, prefix string) []string {
	t.Helper()
	paths, err := filepath.Glob(prefix + ".*")
	require.NoError(t, err)
	return paths
}

func TestAJournalThatCannotBeKept(t *testing.T) {
	p := newProject(t)
	o := p.options()
	o.Journal = p.file(p.outside+"/state") + "/learning/0123"
	r := New(o)
	r.Add(read(p.file(p.dir + "/data/1")))
	r.Written()
	rules, _ := lines(r.Result())
	assert.Equal(t, []string{"expose-ro=./data"}, rules)

	o.Journal = p.outside + "/0123"
	require.NoError(t, os.WriteFile(o.Journal+".9", []byte("no journal at all"), 0o600))
	require.NoError(t, os.Symlink("/etc/passwd", o.Journal+".8"))
	require.NoError(t, os.Mkdir(o.Journal+".7", 0o700))
	r = New(o)
	assert.LessOrEqual(t, r.Former(), 1)
	assert.Empty(t, r.Result().Lines)
}
