package audit

// Calls is the registry of sensitive calls.
var Calls []Call

// FileEvents are the events that carry paths.
var FileEvents []FileEvent

// FileShims are the path functions without an event.
var FileShims []FileShim

// NetEvents are the events of the socket module.
var NetEvents []NetEvent

// Lookup finds a call by its name or an alias.
func Lookup(name string) (Call, bool) { return Call{}, false }

// Nearest returns the known call or category that name most likely meant, "" if none is near.
func Nearest(name string) string { return "" }
