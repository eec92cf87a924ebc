//go:build psbtest_skip

package control

// FaultSkip has a parameter that gopy cannot map: regen.py must refuse it.
func FaultSkip(c chan int) string { return "" }
