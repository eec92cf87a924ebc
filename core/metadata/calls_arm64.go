package metadata

// machineCalls are none: this architecture has no older forms.
var machineCalls = map[int32]call{}
