//go:build psbtest_list

package control

// FaultList gives what must come as JSON text: regen.py must refuse it.
func FaultList() []string { return []string{"a"} }
