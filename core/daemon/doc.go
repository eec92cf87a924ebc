// Package daemon runs sandboxed interpreters: it starts one through a provider, answers its questions from the policy,
// records what was refused or learned, watches it, and ends it.
//
//	plan, err := daemon.Prepare(spec)       // profile, policy, provider; nothing runs yet
//	child, err := plan.Start(ctx)           // the boundary stands, the guard has said hello
//	status, err := child.Wait()
//
// [Open] gives a [Sandbox] on top: one child at a time, started again with back-off when it dies.
//
// The package trusts the host's environment and the profile. Of a child it trusts nothing: a message that is no question
// closes the socket it came on, what arrives is bounded in size and number, and an unanswered question refuses.
package daemon
