package policy

import "slices"

// evalGroup is one word of `eval-syntax` and the classes of Python's `ast` that it stands for.
type evalGroup struct {
	name  string
	nodes []string
}

// evalGroups is the vocabulary of `eval-syntax`, besides the classes themselves.
var evalGroups = []evalGroup{
	{"arith", []string{"BinOp", "UnaryOp"}},
	{"compare", []string{"Compare", "BoolOp"}},
	{"conditional", []string{"If", "IfExp"}},
	{"loop", []string{"For", "While", "Break", "Continue"}},
	{"comprehension", []string{"ListComp", "SetComp", "DictComp", "GeneratorExp", "comprehension"}},
	{"assign", []string{"Assign", "AugAssign", "AnnAssign", "NamedExpr"}},
	{"func", []string{"FunctionDef", "Return", "arguments", "arg", "Lambda"}},
	{"async", []string{"AsyncFunctionDef", "Await", "AsyncFor", "AsyncWith"}},
	{"class", []string{"ClassDef"}},
	{"exception", []string{"Try", "TryStar", "Raise", "ExceptHandler"}},
	{"context", []string{"With", "withitem"}},
	{"import", []string{"Import", "ImportFrom", "alias"}},
	{"subscript", []string{"Subscript", "Slice", "Starred"}},
	{"fstring", []string{"JoinedStr", "FormattedValue"}},
	{"tstring", []string{"TemplateStr", "Interpolation"}},
	{"yield", []string{"Yield", "YieldFrom"}},
	{"match", []string{"Match", "match_case", "MatchValue", "MatchSingleton", "MatchSequence", "MatchMapping", "MatchClass", "MatchStar", "MatchAs", "MatchOr"}},
}

// evalLoneNodes are classes in no group: granted by their own name only.
var evalLoneNodes = []string{"Assert", "Delete", "Global", "Nonlocal", "Pass", "TypeAlias"}

// evalAlways are the classes that need no rule, or that follow from another (`Call` from eval-call, `Attribute` from
// eval-attribute, an operator from its expression). Naming one is no mistake and changes nothing.
var evalAlways = []string{
	"Module", "Expression", "Interactive", "Constant", "Name", "Load", "Store", "Del", "Tuple", "List", "Dict", "Set", "Expr", "Call", "keyword", "Attribute",
}

// evalNodes gives the classes that a word of `eval-syntax` stands for, nil for an unknown word.
func evalNodes(word string) []string {
	for _, g := range evalGroups {
		if g.name == word || slices.Contains(g.nodes, word) {
			if g.name == word {
				return g.nodes
			}
			return []string{word}
		}
	}
	if slices.Contains(evalLoneNodes, word) || slices.Contains(evalAlways, word) {
		return []string{word}
	}
	return nil
}

// evalWords are all words of `eval-syntax`, groups first, for the nearest one to a mistake.
func evalWords() []string {
	var words, nodes []string
	for _, g := range evalGroups {
		words, nodes = append(words, g.name), append(nodes, g.nodes...)
	}
	return slices.Concat(words, nodes, evalLoneNodes, evalAlways)
}

// evalMethodGroups are the words of `eval-attribute` that stand for the methods of a type, which the interpreter counts.
var evalMethodGroups = []string{"str-methods", "list-methods", "dict-methods", "set-methods", "tuple-methods", "num-methods", "bytes-methods", "date-methods"}

// EvalGroupOf gives the group of `eval-syntax` that stands for a class of ast where all of its classes are among those seen; "" where
// the class is written by itself. The class `comprehension` has the name of its group, which is meant then.
func EvalGroupOf(class string, seen []string) string {
	for _, g := range evalGroups {
		all := slices.ContainsFunc(g.nodes, func(n string) bool { return n == g.name && slices.Contains(seen, n) }) ||
			!slices.ContainsFunc(g.nodes, func(n string) bool { return !slices.Contains(seen, n) })
		if slices.Contains(g.nodes, class) && all {
			return g.name
		}
	}
	return ""
}
