// Package initproc is init: the program that runs between the supervisor and the interpreter. It puts a boundary
// around itself, proves it, and becomes the interpreter. There is one for all Linux providers; what it has to do is
// in the plan (providers/plan).
//
// Everything that belongs to a thread (credentials, no_new_privs, Landlock, the filter) is done on the one OS thread
// that will exec: the kernel ends the others then. A second thread, which stays outside the filter, hands the
// listener over.
//
// init trusts the plan. It never goes on after an error: a boundary that does not stand completely is no boundary.
package initproc
