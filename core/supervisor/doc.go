// Package supervisor is the command line of python-sb: `python` with a policy.
//
// It reads the options (its own, then Python's, up to the target), starts the sandbox through core/daemon, shares the
// terminal with it, and ends as it ended: with its exit code or by its signal.
//
// The package trusts its command line and its environment as python does. It loads nothing of Python into itself and
// never interprets what comes after the target.
package supervisor
