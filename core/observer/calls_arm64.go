package observer

// machineFileCalls: this architecture never had the older forms.
var machineFileCalls map[int32]fileCall

func (c *call) olderOpen() (flags uint64, ok bool) { return 0, false }
