//go:build psbtest_void

package control

// FaultVoid has no result: regen.py must refuse it.
func FaultVoid() {}
