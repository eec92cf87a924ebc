package learn

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestAVirtualEnvironmentElsewhere(t *testing.T) {
	p := newProject(t)
	p.env["VIRTUAL_ENV"] = p.outside + "/venv"
	rules, _ := lines(p.learn(p.options(), read(p.file(p.outside+"/venv/share/x"))))
	assert.Equal(t, []string{"expose-ro=${VIRTUAL_ENV:-" + p.outside + "/venv}/share"}, rules)
	p.env["VIRTUAL_ENV"] = p.dir + "/.venv"
	rules, _ = lines(p.learn(p.options(), read(p.file(p.dir+"/.venv/share/x"))))
	assert.Equal(t, []string{"expose-ro=./.venv/share"}, rules)
}

func TestTheNumberOfAnotherProcessIsNotWritten(t *testing.T) {
	p := newProject(t)
	_, one := lines(p.learn(p.options(), read("/proc/1/status")))
	_, other := lines(p.learn(p.options(), read("/proc/2/status")))
	assert.Equal(t, one, other, "else each run would add a line")
}

func TestFilesBesideTheProfileAreNamedOneByOne(t *testing.T) {
	p := newProject(t)
	p.file(p.dir + "/never.txt")
	see := []Observation{read(p.file(p.dir + "/m.py")), read(p.file(p.dir + "/n.py"))}
	result := p.learn(p.options(), see...)
	rules, _ := lines(result)
	assert.Equal(t, []string{"expose-ro=./m.py", "expose-ro=./n.py"}, rules)
	assert.Equal(t, Low, result.Lines[0].Risk)
	for i := range maxBeside {
		see = append(see, read(p.file(p.dir+"/many"+strings.Repeat("x", i)+".py")))
	}
	rules, _ = lines(p.learn(p.options(), see...))
	assert.Equal(t, []string{"expose-ro=./"}, rules)
}

func TestAFolderThatIsNeverExposedIsNotForHavingBeenMade(t *testing.T) {
	p := newProject(t)
	config := p.home + "/.config"
	path := p.file(config + "/app/settings")
	rules, _ := lines(p.learn(p.options(), did("mkdir", config, true), did("mkdir", config+"/app", true), wrote(path)))
	assert.Equal(t, []string{"expose-rw=~/.config/app/"}, rules)
}

func TestTerminalsAreGivenByAnotherName(t *testing.T) {
	p := newProject(t)
	for _, l := range p.learn(p.options(), native(did("open", "/dev/ptmx", true))).Lines {
		if l.Line == "expose-rw=/dev/pts" {
			assert.Equal(t, High, l.Risk)
			return
		}
	}
	assert.Fail(t, "no rule for what the maker of terminals gives")
}

func TestModulesThatAreNoIdentifiers(t *testing.T) {
	p := newProject(t)
	imported := func(name string) Observation { return Observation{Family: FamilyImport, Op: "import", Subject: name} }
	rules, notes := lines(p.learn(p.options(), imported("81d243bd2c585b0f4821__mypyc"), imported("раypal")))
	assert.Equal(t, []string{"python-import=81d243bd2c585b0f4821__mypyc"}, rules)
	assert.Len(t, notes, 1)
}
