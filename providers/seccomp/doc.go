// Package seccomp decides which system calls a sandboxed process may make, and holds the kernel's calls for it.
//
// It is an allow list: what is in no table is refused. The tables (table_*.go) are meant to be read line by line;
// the calls that need a look at their arguments are in arguments.go, the ones that stand in for a Landlock right
// which an older kernel lacks in compensate.go. filter.go turns all of them into one BPF program.
//
// A filter sees numbers only: paths, addresses and anything else behind a pointer is Landlock's part or the
// supervisor's. Of each argument it reads the low 32 bits, which is all the kernel itself reads of the arguments
// looked at here (flags of clone, file descriptors, process numbers, ioctl requests). Of a pointer, both halves: one
// whose low half is zero is as good as any.
package seccomp
