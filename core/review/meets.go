package review

import (
	"slices"
	"strings"
)

// meets tells that some grant opens a part of what g takes away. Where it cannot be told, it does.
func meets(grants []Grant, g *Grant) bool {
	return slices.ContainsFunc(grants, func(o Grant) bool {
		if o.Deny {
			return false
		}
		switch {
		case g.Rule.Key == "unenv":
			return o.Rule.Key == "env" && nameMeets(g.Value, o.Rule.Items[0])
		case g.ignore != nil:
			return o.exposure != nil && hides(g, &o)
		case g.net != nil:
			return o.net != nil && g.net.Meets(*o.net)
		case g.Rule.Key == "python-import":
			return o.Rule.Key == g.Rule.Key && modulesMeet(g.target, o.target)
		}
		return o.Rule.Key == g.Rule.Key && callsMeet(g.target, o.target)
	})
}

// hides tells that an ignore rule may match something that an exposure shows, or the exposure itself.
func hides(ignore, exposure *Grant) bool {
	fixed := ignore.ignore.Fixed
	return fixed == "" || under(fixed, shown(exposure)) || under(shown(exposure), fixed)
}

func modulesMeet(a, b string) bool {
	return a == "*" || b == "*" || a == b || strings.HasPrefix(a, b+".") || strings.HasPrefix(b, a+".")
}

// callsMeet knows functions, categories and `*`. A grant may carry to another category (who may start a process may end
// it), which a DENY of that category takes away: wide DENYs meet every grant. A DENY of exec() refuses strings given to
// eval() too.
func callsMeet(deny, allow string) bool {
	return deny == execCall && allow == evalCall || deny == allow || deny == "*" || allow == "*" || isCategory(deny) || categoryOf(deny) == allow
}

const (
	execCall = "builtins.exec"
	evalCall = "builtins.eval"
)
