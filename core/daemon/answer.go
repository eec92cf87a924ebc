package daemon

import (
	"bytes"
	"strconv"
	"syscall"

	"github.com/pysandboxes/pysandboxes/core/policy"
	"github.com/pysandboxes/pysandboxes/core/wire"
)

// judge answers questions from a policy. Its state is the denials it records, the unix sockets of the sandbox's own and
// the addresses that names gave.
type judge struct {
	policy  *policy.Policy
	names   names
	learn   bool // everything is allowed
	atStart bool // the kernel grants what exists when the sandbox starts, and nothing that is made later
	denials *denials
	bound   boundSockets
}

// refusal is the exception and the errno of one family.
type refusal struct {
	exc   wire.Exception
	errno syscall.Errno
}

var refusals = map[wire.Op]refusal{
	wire.OpFile:   {wire.ExcFileNotFound, syscall.ENOENT},
	wire.OpImport: {wire.ExcModuleNotFound, 0},
	wire.OpCall:   {wire.ExcAPIPermission, syscall.EPERM},
	wire.OpNet:    {wire.ExcConnectionRefused, syscall.ECONNREFUSED},
	wire.OpEval:   {wire.ExcEvalPermission, syscall.EPERM},
	wire.OpEnv:    {wire.ExcSandBox, 0}, // raised nowhere: the KeyError of the program carries it
	wire.OpRemove: {wire.ExcSandBox, 0}, // nor this: the kernel's PermissionError does
}

// answer decides a question of one of the families.
func (j *judge) answer(q wire.Question) wire.Answer {
	if j.learn {
		return wire.Answer{Seq: q.Seq, Allow: true}
	}
	if q.Op == wire.OpNative {
		return j.native(q)
	}
	if q.Op == wire.OpHidden {
		return wire.Answer{Seq: q.Seq, Allow: true, Message: j.shown(q.Path, q.Names)}
	}
	how, known := refusals[q.Op]
	if !known {
		return wire.Answer{Seq: q.Seq, Exc: wire.ExcSandBox, Message: "the sandbox was asked what it does not know: " + string(q.Op)}
	}
	d := j.decide(q)
	if d.Allow && j.atStart && q.Op == wire.OpFile && q.Write {
		if refused, absent := j.policy.Absent(q.Path, q.Event); absent {
			d = refused
		}
	}
	if d.Allow {
		return wire.Answer{Seq: q.Seq, Allow: true}
	}
	if q.Op == wire.OpFile && q.Write && j.policy.File(q.Path, policy.Read, q.Event).Allow {
		how = refusal{wire.ExcPermission, syscall.EACCES} // it is there, and read only
	}
	if q.Op == wire.OpFile && q.Via != "" {
		d = d.Through(q.Via)
	}
	denial := wire.Denial{
		Layer: "python", Family: d.Family, Subject: d.Subject, Op: d.Op, Category: d.Category, Add: d.Add, Message: d.Message(),
	}
	if q.Op == wire.OpRemove {
		denial.Layer = "os"
	}
	if !d.Rule.IsZero() {
		denial.Rule = d.Rule.String()
	}
	j.denials.add(denial)
	return wire.Answer{Seq: q.Seq, Exc: how.exc, Errno: int(how.errno), Message: denial.Message, Denial: &denial}
}

// ownProcess tells a question about the folder of the very process that asks, by its number, which a rule for /proc/self allows.
func (j *judge) ownProcess(q wire.Question, asker int) bool {
	path := ofAsker(q.Path, asker)
	if path == q.Path || j.learn {
		return false
	}
	q.Path = path
	return j.decide(q).Allow
}

// native gives the next refusal of native code, with its number for a message.
func (j *judge) native(q wire.Question) wire.Answer {
	a := wire.Answer{Seq: q.Seq, Allow: true}
	if d, number := j.denials.nativeAfter(q.After); number > 0 {
		a.Denial, a.Message = &d, strconv.FormatUint(number, 10)
	}
	return a
}

// shown has a letter for each name in a folder: + where a list of the folder shows it, - where an ignore rule hides it.
func (j *judge) shown(folder string, names []string) string {
	letters := bytes.Repeat([]byte{'+'}, len(names))
	for i, name := range names {
		if j.policy.Hidden(folder, name) {
			letters[i] = '-'
		}
	}
	return string(letters)
}

func (j *judge) decide(q wire.Question) policy.Decision {
	switch q.Op {
	case wire.OpFile:
		access := policy.Read
		if q.Write {
			access = policy.Write
		}
		return j.policy.File(q.Path, access, q.Event)
	case wire.OpImport:
		return j.policy.Import(q.Name, q.Hint)
	case wire.OpCall:
		return j.policy.Call(q.Names, q.Event)
	case wire.OpNet:
		if q.Proto == "unix" && j.ownSocket(q) {
			return policy.Decision{Allow: true}
		}
		proto := q.Proto
		if q.NetOp == "resolve" || q.NetOp == "reverse" {
			proto = "" // what will be spoken with the address is not known yet
		}
		return j.names.decide(policy.NetQuestion{Op: q.NetOp, Proto: proto, Host: q.Host, Port: q.Port})
	case wire.OpEval:
		return j.policy.Eval(q.Kind)
	case wire.OpEnv:
		return j.policy.Env(q.Name)
	case wire.OpRemove:
		return j.policy.Remove(q.Path, q.Event)
	}
	return policy.Decision{}
}
