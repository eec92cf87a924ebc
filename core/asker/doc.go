// Package asker looks at a thread that waits for the answer to a system call: it copies the memory that the call names and
// finds the file that it means, by the thread's own working directory, descriptors and mounts.
//
// It decides nothing. What it gives was the thread's at one moment; whoever acts on it asks the kernel afterwards whether the
// thread still waits, and acts on the copies.
package asker
