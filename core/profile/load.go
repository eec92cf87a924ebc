package profile

import "errors"

// Load reads a profile.
func Load(o Options) (*Profile, error) { return nil, errors.New("not ready") }
