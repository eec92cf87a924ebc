package daemon

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pysandboxes/pysandboxes/core/learn"
	"github.com/pysandboxes/pysandboxes/core/profile"
	"github.com/pysandboxes/pysandboxes/core/wire"
)

// without is a world whose profile is not there.
func without(t *testing.T) *world {
	w := newWorld(t, "", "waits")
	require.NoError(t, os.Remove(w.spec.ProfilePath))
	w.spec.ProfilePath = ""
	return w
}

func TestAMissingProfile(t *testing.T) {
	t.Run("is an error that says how to learn one", func(t *testing.T) {
		w := without(t)
		_, err := Prepare(w.spec)
		var missing *MissingProfileError
		require.ErrorAs(t, err, &missing)
		assert.ErrorContains(t, err, "no profile was found; looked for:\n    "+w.spec.Searched[0])
		assert.True(t, strings.HasSuffix(err.Error(), "python-sb --learn …"))
		w.spec.Mode = wire.ModePartial
		_, err = Prepare(w.spec)
		assert.ErrorContains(t, err, "learn=")
	})
	t.Run("is learned on a terminal", func(t *testing.T) {
		w := without(t)
		w.spec.Learn.IfMissing = true
		p, err := Prepare(w.spec)
		require.NoError(t, err)
		assert.True(t, p.Learning())
		assert.Equal(t, w.spec.Searched[0], p.LearnPath())
		_, err = p.Learned()
		require.NoError(t, err)
		assert.FileExists(t, w.spec.Searched[0], "even a program that needs nothing gets its profile")
	})
	t.Run("is never learned where that is forbidden", func(t *testing.T) {
		w := without(t)
		w.spec.Learn.IfMissing = true
		w.spec.Env["PYSANDBOXES_LEARN"] = "never"
		_, err := Prepare(w.spec)
		assert.ErrorContains(t, err, "PYSANDBOXES_LEARN=never forbids learning one")
	})
	t.Run("is not learned in silence where one was before", func(t *testing.T) {
		w := newWorld(t, subprocess, "waits")
		_, err := Prepare(w.spec)
		require.NoError(t, err)
		require.NoError(t, os.Remove(w.spec.ProfilePath))
		w.spec.ProfilePath, w.spec.Learn.IfMissing = "", true
		_, err = Prepare(w.spec)
		var missing *MissingProfileError
		require.ErrorAs(t, err, &missing)
		assert.ErrorContains(t, err, "was used on this machine before and is gone")
		require.FileExists(t, missing.Former)
		assert.ErrorContains(t, err, "rm "+missing.Former)
		w.spec.Learn.On = true
		_, err = Prepare(w.spec)
		assert.NoError(t, err, "a person who asks for it may")
		w.spec.Learn.On = false
		require.NoError(t, os.Remove(missing.Former))
		_, err = Prepare(w.spec)
		assert.NoError(t, err)
	})
}

func TestLearningThatIsForbidden(t *testing.T) {
	w := newWorld(t, subprocess, "waits")
	w.spec.Learn.On = true
	w.spec.Env["PYSANDBOXES_LEARN"] = "never"
	_, err := Prepare(w.spec)
	assert.EqualError(t, err, "learning is forbidden: PYSANDBOXES_LEARN=never is set")

	w = newWorld(t, subprocess+"learn=other\n", "waits")
	w.spec.Env["PYSANDBOXES_LEARN"] = "never"
	_, err = Prepare(w.spec)
	assert.ErrorContains(t, err, "learning is forbidden")

	w = newWorld(t, subprocess+"learn=false\n", "waits")
	w.spec.Learn.On = true
	_, err = Prepare(w.spec)
	assert.ErrorContains(t, err, "is locked by learn=false")
}

func TestLearningGoesWhereItIsTold(t *testing.T) {
	w := newWorld(t, subprocess+"learn=candidate\n", "waits")
	p, err := Prepare(w.spec)
	require.NoError(t, err)
	assert.Equal(t, filepath.Join(w.dir, "candidate"), p.LearnPath(), "the profile's own wish")
	w.spec.Learn.On, w.spec.Learn.File = true, "given"
	p, err = Prepare(w.spec)
	require.NoError(t, err)
	assert.Equal(t, filepath.Join(w.dir, "given"), p.LearnPath(), "the command line is stronger")
}

func TestWhatASandboxMustNotWrite(t *testing.T) {
	for name, line := range map[string]string{
		"the profile":           "expose-rw=.\n",
		"the caches and states": "expose-rw=./home\n",
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, subprocess+line, "waits")
			require.NoError(t, os.MkdirAll(filepath.Join(w.dir, "home"), 0o755))
			_, err := Prepare(w.spec)
			require.Error(t, err)
			assert.ErrorContains(t, err, w.spec.ProfilePath+":3")
		})
	}
}

func TestPrepareSaysWhatIsWrong(t *testing.T) {
	w := newWorld(t, "os-sandbox=landlok\n", "waits")
	_, err := Prepare(w.spec)
	var syntax *profile.SyntaxError
	require.ErrorAs(t, err, &syntax)
	assert.ErrorContains(t, err, w.spec.ProfilePath+":1")

	w = newWorld(t, subprocess, "waits")
	w.spec.Interpreter.Preload = ""
	_, err = Prepare(w.spec)
	assert.ErrorContains(t, err, "holds no _preload.so")

	for _, change := range []func(*Spec){
		func(s *Spec) { s.Mode = "" }, func(s *Spec) { s.Interpreter = nil }, func(s *Spec) { s.InitPath = "" },
		func(s *Spec) { s.ProfilePath, s.Searched = "", nil },
	} {
		w := newWorld(t, subprocess, "waits")
		change(&w.spec)
		_, err := Prepare(w.spec)
		assert.Error(t, err)
	}
}

func TestNoneStartsNothing(t *testing.T) {
	w := newWorld(t, "os-sandbox=none\n", "waits")
	p, err := Prepare(w.spec)
	assert.ErrorIs(t, err, ErrDirect)
	require.NotNil(t, p)
	assert.Equal(t, "none", p.Provider())
	assert.Contains(t, strings.Join(p.Notices(), "\n"), "no rule of the profile is held")
}

func TestAWeakerLayerFromTheEnvironmentIsSaid(t *testing.T) {
	w := newWorld(t, "os-sandbox=${OS_SANDBOX:-auto}\n", "waits")
	w.spec.Env["OS_SANDBOX"] = "subprocess"
	p, err := Prepare(w.spec)
	require.NoError(t, err)
	assert.Contains(t, strings.Join(p.Notices(), "\n"), "OS_SANDBOX=subprocess in the environment takes the kernel boundary away")

	w = newWorld(t, subprocess, "waits")
	w.spec.Env["OS_SANDBOX"] = "subprocess"
	p, err = Prepare(w.spec)
	require.NoError(t, err)
	assert.NotContains(t, strings.Join(p.Notices(), "\n"), "in the environment", "the profile's own line is a person's decision")
}

func TestDenialsAreCountedAndBounded(t *testing.T) {
	var d denials
	for range 3 {
		d.add(wire.Denial{Family: "file", Subject: "/a"})
	}
	d.add(wire.Denial{Family: "file", Subject: "/b"})
	require.Len(t, d.list(), 2)
	assert.Equal(t, 3, d.list()[0].Count)
	for i := range 3 * maxDenials {
		d.add(wire.Denial{Family: "file", Subject: strings.Repeat("x", i%(2*maxDenials))})
	}
	assert.Len(t, d.list(), maxDenials)
	assert.Equal(t, 4+3*maxDenials, d.counts())
}

func TestFilesOfTheImportSystem(t *testing.T) {
	for _, tc := range []struct {
		q    wire.Question
		want string
	}{
		{wire.Question{Path: "/p/a.py", Event: "open"}, "/p/a.py"},
		{wire.Question{Path: "/p/__pycache__/a.cpython-311.pyc", Event: "open"}, "/p/a.py"},
		{wire.Question{Path: "/p/__pycache__/a.cpython-311.pyc.1", Event: "open", Write: true}, ""},
		{wire.Question{Path: "/p", Event: "os.listdir"}, ""},
		{wire.Question{Path: "/p/a.py", Event: "posix.stat"}, ""},
	} {
		got, kept := importedFile(tc.q)
		assert.Equal(t, tc.want != "", kept, tc.q.Path)
		assert.Equal(t, tc.want, got)
	}
}

func TestAMissingPathIsSaidOnce(t *testing.T) {
	w := newWorld(t, "expose-rw=./later\nexpose-ro=./other\nnet=ALLOW|TCP|127.0.0.1|80|OUT\n", "waits")
	p, err := Prepare(w.spec)
	var setup *SetupError
	if errors.As(err, &setup) {
		t.Skipf("no kernel boundary here: %s", err)
	}
	require.NoError(t, err)
	require.Len(t, p.Notices(), 2, "%q", p.Notices())
	for i, name := range []string{"later", "other"} {
		assert.Contains(t, p.Notices()[i], ".py-sandboxes:"+strconv.Itoa(i+1)+": "+filepath.Join(w.dir, name)+" does not exist: the kernel can grant only")
	}
	w = newWorld(t, subprocess+"expose-rw=./later\n", "waits")
	p, err = Prepare(w.spec)
	require.NoError(t, err)
	assert.Equal(t, 1, strings.Count(strings.Join(p.Notices(), "\n"), "does not exist"), "by the compiler, where the provider holds no files")
}

func TestFoldersThatTheProfileWantsMade(t *testing.T) {
	w := newWorld(t, subprocess+"expose-rw=./out/deep/\nexpose-rw=./here/\nexpose-rw=./not\nexpose-ro=./neither/\n", "waits")
	here := filepath.Join(w.dir, "here")
	require.NoError(t, os.Mkdir(here, 0o700))
	p, err := Prepare(w.spec)
	require.NoError(t, err)
	assert.NoDirExists(t, filepath.Join(w.dir, "out"), "preparing makes nothing")
	made, err := p.makeFolders()
	require.NoError(t, err)
	deep := filepath.Join(w.dir, "out/deep")
	assert.Equal(t, map[string]bool{deep: true}, made)
	assert.DirExists(t, deep)
	assert.NoDirExists(t, filepath.Join(w.dir, "not"))
	assert.NoDirExists(t, filepath.Join(w.dir, "neither"))
	made, err = p.makeFolders()
	require.NoError(t, err)
	assert.Empty(t, made, "the next start of the same plan finds it")

	require.NoError(t, os.RemoveAll(filepath.Join(w.dir, "out")))
	require.NoError(t, os.WriteFile(filepath.Join(w.dir, "out"), nil, 0o600))
	_, err = p.makeFolders()
	assert.ErrorContains(t, err, ".py-sandboxes:3: making the folder that the rule exposes")
	require.NoError(t, os.Remove(filepath.Join(w.dir, "out")))

	w.spec.Learn.On = true
	p, err = Prepare(w.spec)
	require.NoError(t, err)
	made, err = p.makeFolders()
	require.NoError(t, err)
	assert.Empty(t, made, "the program that is learned from may have to make it")
}

func TestTheSummaryOfALearningRun(t *testing.T) {
	r := LearnReport{Path: "/p"}
	assert.Equal(t, "nothing new was learned; /p is unchanged", r.Summary())
	r.Changed, r.Result.Lines = true, []learn.Learned{{Line: "python-import=json"}, {Comment: "not learned"}}
	assert.Equal(t, "learned 1 rule; check this file: /p", r.Summary())
	r.Result.Lines = append(r.Result.Lines, learn.Learned{Line: "python-import=os"})
	assert.Equal(t, "learned 2 rules; check this file: /p", r.Summary())
}
