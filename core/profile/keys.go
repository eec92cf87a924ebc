package profile

// Kind is how the value of a key is read.
type Kind int

// The kinds of value.
const (
	Text     Kind = iota // free text
	Bool                 // true, false
	Choice               // one of Key.Choices
	Count                // a whole number, `_` as separator
	Size                 // a number with KB, MB, GB
	Duration             // a number with ms, s, m, h
	List                 // items between commas
	Fields               // fields between vertical bars
	Paths                // one or two paths between commas
	Env                  // NAME=value
)

// Key is one key of a profile.
type Key struct {
	Name    string
	Family  string // section of the template
	Kind    Kind
	Choices []string // for Choice
	Scalar  bool     // the strongest origin wins; a repeat inside one file is an error
	Grammar string   // the form, as the reference shows it
	Meaning string
	Risk    string // one sentence: what granting it opens
	Example string // a typical line
}

// Keys is the one table of keys.
var Keys []Key

// Template returns the text of a new profile.
func Template() string { return "" }

// Quote returns s so that it reads back exactly as one item of a value.
func Quote(s string) string { return s }
