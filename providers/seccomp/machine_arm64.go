//go:build linux

package seccomp

// machineMetadataCalls: this architecture never had the older forms.
var machineMetadataCalls []Call

// machineRules: this architecture has clone only.
func machineRules(Needs) []Rule { return nil }
