package learn

import (
	"strings"

	"github.com/pysandboxes/pysandboxes/core/audit"
)

// The grades of this file are for tools that review a profile: what learning marks, they mark, from the same tables.

// GradeVariable says what handing on a variable of the host opens, by its name.
func GradeVariable(name string) (Risk, string) { return envRisk(name) }

// GradeCategory says what a granted function of a category opens.
func GradeCategory(c audit.Category) (Risk, string) {
	g := callRisks[c]
	return g.risk, g.why
}

// GradeImport says what importing a module opens past the rule that names it.
func GradeImport(module string) (Risk, string) {
	top, _, _ := strings.Cut(module, ".")
	g := dangerousImports[top]
	return g.risk, g.why
}

// Wholesale tells a folder that is never to be exposed as a whole, or that holds the home folder. "" as home means that
// it is not known.
func Wholesale(path, home string) bool {
	return newPlaces(Options{Home: home}).wholesale(path)
}

// SecretPath tells a path that lies in a folder of secrets, or a name that secrets have.
func SecretPath(path string) bool {
	name := path[strings.LastIndexByte(path, '/')+1:]
	return secretPath(path) || secretPath(path+"/x") || secretFile.MatchString(name)
}

// RunLater tells a path whose content is run by others: writing there outlives the sandbox.
func RunLater(path string, file bool) bool {
	return codeFolder.MatchString(path) || file && startFile.MatchString(path)
}

// Distributions says which installed distribution a top-level module came from, as "name version", by the RECORD files in
// the site folders; "" where none names it.
func Distributions(site []string) func(module string) string {
	known := readDistributions(site)
	return func(module string) string { return known.of[module] }
}
