package control

import (
	"runtime"

	"golang.org/x/sys/unix"

	"github.com/pysandboxes/pysandboxes/bindings/border"
	"github.com/pysandboxes/pysandboxes/core/wire"
	"github.com/pysandboxes/pysandboxes/providers"
)

// Doctor says, as JSON, what this machine can enforce: version, kernel, architecture, go, and providers, each with name, usable, why and
// how (where it is not usable), enforces and gaps. It changes nothing.
func Doctor() (string, error) {
	type provider struct {
		Name     string        `json:"name"`
		Usable   bool          `json:"usable"`
		Why      border.Text   `json:"why"`
		How      border.Text   `json:"how"`
		Enforces []border.Text `json:"enforces"`
		Gaps     []border.Text `json:"gaps"`
	}
	answer := struct {
		Version      string      `json:"version"`
		Kernel       border.Text `json:"kernel"`
		Architecture string      `json:"architecture"`
		Go           string      `json:"go"`
		Providers    []provider  `json:"providers"`
	}{Version: wire.Version, Architecture: runtime.GOARCH, Go: runtime.Version()}
	var name unix.Utsname
	if err := unix.Uname(&name); err == nil {
		answer.Kernel = border.Text(unix.ByteSliceToString(name.Sysname[:]) + " " + unix.ByteSliceToString(name.Release[:]))
	}
	for _, r := range providers.Reports() {
		answer.Providers = append(answer.Providers, provider{
			r.Name, r.Usable, border.Text(r.Why), border.Text(r.How), texts(r.Enforces), texts(r.Gaps),
		})
	}
	return border.JSON(answer)
}
