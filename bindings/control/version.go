package control

import "github.com/pysandboxes/pysandboxes/core/wire"

// Version is the product's version, as pyproject.toml says it: the build sets it.
func Version() string { return wire.Version }
