package control

import (
	"runtime"

	"github.com/pysandboxes/pysandboxes/bindings/border"
	"github.com/pysandboxes/pysandboxes/core/machine"
	"github.com/pysandboxes/pysandboxes/core/resolver"
	"github.com/pysandboxes/pysandboxes/core/wire"
	"github.com/pysandboxes/pysandboxes/providers"
)

// Doctor says what this machine can enforce. The request is JSON: env, cwd, interpreter, package. The answer is JSON: version, kernel, architecture, go,
// interpreter (executable, version, package, guard, problem), features (name, there, value, meaning), auto (the provider that os-sandbox=auto takes, or why
// none), network (how network rules are held by the default provider, and why), files (the same of what lies beneath exposed folders), names (who is asked for them), limits (whole or partial) and providers, each with name, usable, why and how (where it is not usable), enforces and gaps. It changes nothing.
func Doctor(request string) (string, error) {
	type provider struct {
		Name     string        `json:"name"`
		Usable   bool          `json:"usable"`
		Why      border.Text   `json:"why"`
		How      border.Text   `json:"how"`
		Enforces []border.Text `json:"enforces"`
		Gaps     []border.Text `json:"gaps"`
	}
	type feature struct {
		Name    string      `json:"name"`
		There   bool        `json:"there"`
		Value   border.Text `json:"value"`
		Meaning string      `json:"meaning"`
	}
	type python struct {
		Executable border.Text `json:"executable"`
		Version    string      `json:"version"`
		Package    border.Text `json:"package"`
		Guard      border.Text `json:"guard"`
		Problem    border.Text `json:"problem"`
	}
	var r host
	if err := read(request, &r); err != nil {
		return "", err
	}
	answer := struct {
		Version      string      `json:"version"`
		Kernel       border.Text `json:"kernel"`
		Architecture string      `json:"architecture"`
		Go           string      `json:"go"`
		Interpreter  python      `json:"interpreter"`
		Features     []feature   `json:"features"`
		Auto         border.Text `json:"auto"`
		Network      border.Text `json:"network"`
		Files        string      `json:"files"`
		Names        border.Text `json:"names"`
		Limits       string      `json:"limits"`
		Providers    []provider  `json:"providers"`
	}{Version: wire.Version, Kernel: border.Text(machine.Kernel()), Architecture: runtime.GOARCH, Go: runtime.Version()}
	if in, err := r.python(); err != nil {
		answer.Interpreter = python{Executable: r.Interpreter, Problem: border.Text(err.Error())}
	} else {
		answer.Interpreter = python{border.Text(in.Executable), in.FullVersion, border.Text(in.Package), border.Text(in.Guard), ""}
		if err := in.CheckInstalled(wire.Version); err != nil {
			answer.Interpreter.Problem = border.Text(err.Error())
		}
	}
	there := map[string]bool{}
	for _, f := range machine.Features() {
		there[f.Name] = f.There
		answer.Features = append(answer.Features, feature{f.Name, f.There, border.Text(f.Value), f.Meaning})
	}
	if network, err := providers.NetworkHere(string(r.Env["PYSANDBOXES_NETWORK"]), there["namespaces"], there["pidfd_getfd"]); err != nil {
		answer.Network = border.Text(err.Error())
	} else {
		answer.Network = border.Text(network)
	}
	answer.Files = providers.FilesHere(there["namespaces"])
	answer.Names = border.Text(resolver.ReadSystem().String())
	answer.Limits = "whole: limit-memory and limit-processes hold a sandbox with all that it starts"
	if !there["cgroup v2"] {
		answer.Limits = "partial: there is no control group to be had, so limit-memory holds each process by itself and misses shared memory, and limit-processes counts the user's other processes and spares root"
	}
	if chosen, _, err := providers.Choose("auto"); err != nil {
		answer.Auto = border.Text(err.Error())
	} else {
		answer.Auto = border.Text(chosen.Name())
	}
	for _, r := range providers.Reports() {
		answer.Providers = append(answer.Providers, provider{
			r.Name, r.Usable, border.Text(r.Why), border.Text(r.How), texts(r.Enforces), texts(r.Gaps),
		})
	}
	return border.JSON(answer)
}
