package control

import (
	"github.com/pysandboxes/pysandboxes/bindings/border"
	"github.com/pysandboxes/pysandboxes/core/policy"
	"github.com/pysandboxes/pysandboxes/core/profile"
)

// EvalProfiles reads the guarded profiles of a profile: what its `eval-*` lines allow strings to do. The request is CheckProfile's. The answer
// is a JSON object by name, the plain profile under "", of objects with the fields of policy.EvalProfile. It probes no
// interpreter and looks no name up.
func EvalProfiles(request string) (string, error) {
	r, err := readProfileRequest(request)
	if err != nil {
		return "", err
	}
	prof, err := profile.Load(profile.Options{
		Path: string(r.Profile), Env: r.environ(), Platform: "linux", Home: r.home(), Cwd: string(r.Cwd), IgnoreOverridesLock: true,
	})
	if err != nil {
		return "", err
	}
	found, err := policy.EvalProfilesOf(prof)
	if err != nil {
		return "", err
	}
	return border.JSON(found)
}
