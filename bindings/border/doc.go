// Package border has the two types that every value on its way between Go and Python is made of: Text, a JSON string that
// may hold any bytes, and Fault, an error as JSON. bindings/control uses them for what it takes and gives,
// bindings/core for what it catches.
package border
