package control

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/pysandboxes/pysandboxes/bindings/border"
	"github.com/pysandboxes/pysandboxes/core/daemon"
	"github.com/pysandboxes/pysandboxes/core/interpreter"
	"github.com/pysandboxes/pysandboxes/core/profile"
	"github.com/pysandboxes/pysandboxes/core/wire"
)

// host is what every request says about where it comes from.
type host struct {
	Env         map[string]border.Text `json:"env"` // what ${} reads
	Cwd         border.Text            `json:"cwd"`
	Interpreter border.Text            `json:"interpreter"` // absolute path of the python
	Package     border.Text            `json:"package"`     // folder of the pysandboxes package
}

// openRequest is what Open takes.
type openRequest struct {
	host
	Profile        *border.Text     `json:"profile"`  // null: none was found
	Searched       []border.Text    `json:"searched"` // where, the default place last
	Rules          [][2]border.Text `json:"rules"`    // key and value of each keyword argument
	PythonArgs     []border.Text    `json:"python_args"`
	Learn          json.RawMessage  `json:"learn"`            // null, true, or the file to write
	LearnFor       border.Text      `json:"learn_for"`        // on whose behalf, for the comments of what is learned
	LearnIfMissing *bool            `json:"learn_if_missing"` // default: whether stderr is a terminal
	Extra          []byte           `json:"extra"`            // base64; for the child's Python
	Binary         border.Text      `json:"binary"`           // the python-sb program
	Target         []border.Text    `json:"target"`           // files that are the program itself
	TargetModules  []border.Text    `json:"target_modules"`
	StartTimeout   float64          `json:"start_timeout"` // seconds; 0: the default
}

// read decodes a request. A key that is not known is an error: it would be a wish that nobody fulfils.
func read(request string, into any) error {
	decoder := json.NewDecoder(bytes.NewReader([]byte(request)))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(into); err != nil {
		return fmt.Errorf("the request to the engine is malformed: %w", err)
	}
	if _, err := decoder.Token(); err != io.EOF {
		return fmt.Errorf("the request to the engine is malformed: there is something after it")
	}
	return nil
}

func plain(texts []border.Text) []string {
	out := make([]string, len(texts))
	for i, text := range texts {
		out[i] = string(text)
	}
	return out
}

func (h host) environ() map[string]string {
	env := make(map[string]string, len(h.Env))
	for name, value := range h.Env {
		env[name] = string(value)
	}
	return env
}

func (h host) home() string {
	if home := string(h.Env["HOME"]); home != "" {
		return home
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return ""
	}
	return home
}

// python probes the interpreter. The application knows which pysandboxes it runs; that one is used even where the interpreter
// alone would find another (PYTHONPATH, `uv run --with`).
func (h host) python() (*interpreter.Interpreter, error) {
	found, err := interpreter.Probe(string(h.Interpreter), h.environ())
	if err != nil || h.Package == "" || found.Package == string(h.Package) {
		return found, err
	}
	in := *found
	in.Package, in.Guard, in.Preload = string(h.Package), "", existing(filepath.Join(string(h.Package), "_preload.so"))
	for _, suffix := range in.Suffixes {
		if guard := existing(filepath.Join(in.Package, "_guard"+suffix)); guard != "" && in.Guard == "" {
			in.Guard = guard
		}
	}
	return &in, nil
}

func existing(path string) string {
	if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() {
		return ""
	}
	return path
}

// learning reads the three forms of learn.
func (r openRequest) learning() (daemon.LearnMode, error) {
	mode := daemon.LearnMode{IfMissing: isTerminal(2), For: string(r.LearnFor)}
	if r.LearnIfMissing != nil {
		mode.IfMissing = *r.LearnIfMissing
	}
	switch text := string(r.Learn); text {
	case "", "null", "false":
	case "true":
		mode.On = true
	default:
		var file border.Text
		if err := json.Unmarshal(r.Learn, &file); err != nil || file == "" {
			return mode, fmt.Errorf("learn is neither true nor the name of a file: %s", text)
		}
		mode.On, mode.File = true, string(file)
	}
	return mode, nil
}

// spec translates the request for the daemon.
func (r openRequest) spec() (daemon.Spec, error) {
	learn, err := r.learning()
	if err != nil {
		return daemon.Spec{}, err
	}
	in, err := r.python()
	if err != nil {
		return daemon.Spec{}, err
	}
	spec := daemon.Spec{
		Searched: plain(r.Searched), Env: r.environ(), Interpreter: in, PythonArgs: plain(r.PythonArgs),
		Cwd: string(r.Cwd), Home: r.home(), Mode: wire.ModePartial, Learn: learn, Extra: r.Extra,
		Target: plain(r.Target), TargetModules: plain(r.TargetModules), WithCalls: true, InitPath: string(r.Binary),
		StartTimeout: time.Duration(r.StartTimeout * float64(time.Second)),
	}
	if r.Profile != nil {
		spec.ProfilePath = string(*r.Profile)
	}
	for _, rule := range r.Rules {
		spec.Overrides = append(spec.Overrides, profile.Override{Key: string(rule[0]), Value: string(rule[1]), Origin: profile.OriginCode})
	}
	return spec, nil
}

func isTerminal(fd int) bool {
	_, err := unix.IoctlGetTermios(fd, unix.TCGETS)
	return err == nil
}
