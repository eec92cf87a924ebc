//go:build linux && (amd64 || arm64)

package seccomp

// Table is every known call with its reason and verdict under the given needs, by number: what the documentation
// and the doctor show.
func Table(n Needs) ([]Rule, error) { return verdicts(n) }
