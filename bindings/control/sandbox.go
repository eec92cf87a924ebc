package control

// Sandbox is one open sandbox.
type Sandbox struct{ name string }
