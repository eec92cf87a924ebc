package landlock

import (
	"fmt"
	"path"
	"strings"

	"github.com/pysandboxes/pysandboxes/core/policy"
	"github.com/pysandboxes/pysandboxes/providers/contract"
)

// ignored looks for ignore rules that could name something inside an exposed folder. Landlock grants whole trees
// and cannot take a part out again, so such a rule stops the start unless the profile accepts that the Python
// layer alone holds it.
func ignored(pol *policy.Policy) ([]contract.Gap, error) {
	var gaps []contract.Gap
	for _, ig := range pol.Ignores() {
		for _, e := range pol.Exposures() {
			if e.File || !e.Exists || !mayMatchIn(ig.Glob, e.Source) {
				continue
			}
			if !pol.Switches().IgnoreBestEffort {
				return nil, fmt.Errorf("%s: ignore=%s cannot be held by the kernel inside %s (exposed at %s): Landlock cannot take a part out of an exposed folder.\nExpose the folders beside it one by one, or accept that the Python layer alone holds it, which native code can step around:\n    ignore-best-effort=true",
					ig.Pos, ig.Glob, e.Source, e.Pos)
			}
			gaps = append(gaps, contract.Gap{Rule: ig.Pos, Text: fmt.Sprintf("ignore=%s inside %s is held by the Python layer only", ig.Glob, e.Source)})
		}
	}
	return gaps, nil
}

// mayMatchIn errs on the side of yes: a basename glob can match anywhere, a path glob where its fixed beginning and
// the folder lie in one line.
func mayMatchIn(glob, folder string) bool {
	if !strings.HasPrefix(glob, "/") {
		return true
	}
	fixed := glob
	if i := strings.IndexAny(glob, "*?["); i >= 0 {
		fixed = path.Dir(glob[:i] + "x")
	}
	return beneath(fixed, folder) || beneath(folder, fixed)
}
