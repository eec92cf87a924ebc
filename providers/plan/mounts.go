package plan

// Mounts is a mount namespace of the child's own: the host's files at the places where they are, besides what is named
// here. It holds what Landlock cannot, which grants whole trees and takes nothing out of them again.
//
// All paths are canonical. What was mounted after the start on the host shows inside too; nothing that is mounted
// inside shows on the host.
type Mounts struct {
	// Pinned are folders that keep their name and their place, since what is named below them has to be found there at
	// the next start. A folder stands before what lies beneath it.
	Pinned []string
	// ReadOnly are files and folders that no rule makes writable.
	ReadOnly []string
	// Hidden are files in whose place stands one that nobody may open, and folders in whose place stands an empty one.
	Hidden []string
	// Private are folders in whose place stands an empty one of the sandbox's own, which goes with it.
	Private []Private

	// Needed says why a start without all this must not be, "" where it may: then Without says what does not hold.
	Needed  string
	Without []string
}

// Private is a folder of the sandbox's own, in memory.
type Private struct {
	Path string
	Size uint64 // bytes, 0: what the kernel gives (half of the memory)
}

// StageMounts is the stage of Mounts, in a Failed message.
const StageMounts = "mounts"
