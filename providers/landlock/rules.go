package landlock

import (
	"debug/elf"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/pysandboxes/pysandboxes/core/policy"
	"github.com/pysandboxes/pysandboxes/providers/contract"
	"github.com/pysandboxes/pysandboxes/providers/plan"
)

// always is what an interpreter and the libraries of every program touch, beyond the runtime set, and what gives
// nothing away. Of /proc nothing is granted: the entries of other processes would come along, and a rule for the
// program's own would not hold for the processes it makes.
var always = []struct {
	path   string
	access plan.Access
	why    string
}{
	{"/dev/null", plan.Read | plan.Write, "discarding output"},
	{"/dev/zero", plan.Read, "memory of zeroes"},
	{"/dev/urandom", plan.Read, "random bytes, where getrandom is not used"},
	{"/dev/random", plan.Read, "random bytes"},
	{"/etc/ld.so.cache", plan.Read, "where the dynamic linker finds libraries"},
	{"/sys/devices/system/cpu/online", plan.Read, "how many threads a numerical library starts"},
	{"/sys/devices/system/cpu/possible", plan.Read, "the same"},
	{"/proc/sys/vm/overcommit_memory", plan.Read, "how the allocator reserves memory"},
}

// rulesFor translates the policy's paths. Execution goes to the interpreter only, unless the policy grants running
// programs: then also to what is readable.
func rulesFor(pol *policy.Policy, c contract.Child) ([]plan.Rule, error) {
	read := plan.Read
	if pol.GrantsExec() {
		read |= plan.Execute
	}
	var rules []plan.Rule
	add := func(path string, access plan.Access, optional bool) {
		if path != "" {
			rules = append(rules, plan.Rule{Path: path, Access: access, Optional: optional})
		}
	}
	for _, a := range always {
		add(a.path, a.access, true)
	}
	rt := pol.Runtime()
	for _, set := range [][]string{rt.Read, rt.Stdlib, rt.Site, rt.Libs} {
		for _, path := range set {
			add(path, read, true) // what a cached runtime set names may be gone
		}
	}
	for _, path := range pol.Target() {
		add(path, plan.Read, false)
	}
	if c.Guard != "" {
		add(filepath.Dir(c.Guard), plan.Read, false) // the package: what the child imports of ours
	}
	add(c.Preload, plan.Read, false)

	programs, err := executables(c, rt.Executables)
	if err != nil {
		return nil, err
	}
	for _, path := range programs {
		add(path, plan.Read|plan.Execute, true)
	}
	for _, e := range pol.Exposures() {
		if !e.Exists && !e.Make || pol.HidesAll(e) {
			continue // the former is in Gaps
		}
		access := read
		if e.Write {
			access |= plan.Write | plan.Device
		}
		add(e.Source, access, false)
	}
	return rules, nil
}

// executables is the program with its ELF interpreter, which the kernel opens for execution as well, and the other
// names of the interpreter.
func executables(c contract.Child, known []string) ([]string, error) {
	program := c.Path
	if program == "" && len(c.Argv) > 0 {
		program = c.Argv[0]
	}
	real, err := filepath.EvalSymlinks(program)
	if err != nil {
		return nil, fmt.Errorf("the program to run, %s: %w", program, err)
	}
	out := []string{real}
	for _, path := range append([]string{real}, known...) {
		out = append(out, path)
		linker, err := elfInterpreter(path)
		if err != nil && path == real {
			return nil, fmt.Errorf("the program to run, %s, is no ELF program that this machine can read: %w", real, err)
		}
		if linker != "" {
			out = append(out, linker)
		}
	}
	return out, nil
}

// elfInterpreter reads PT_INTERP: "" for a static program.
func elfInterpreter(path string) (string, error) {
	f, err := elf.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	for _, p := range f.Progs {
		if p.Type != elf.PT_INTERP || p.Filesz > 4096 {
			continue
		}
		data, err := io.ReadAll(p.Open())
		if err != nil {
			return "", err
		}
		return strings.TrimRight(string(data), "\x00"), nil
	}
	return "", nil
}

// provable finds a path that init can prove the boundary with: the root folder, unless a rule reaches it; else a file
// that everyone may open for writing and that no rule lets write. "" where the policy exposes all there is.
func provable(rules []plan.Rule) (path string, write bool) {
	const root, own = "/", "/proc/self/comm"
	if !reached(rules, root, plan.Read) {
		return root, false
	}
	if !reached(rules, own, plan.Write) {
		return own, true
	}
	return "", false
}

func reached(rules []plan.Rule, path string, access plan.Access) bool {
	for _, r := range rules {
		if r.Access&access != 0 && beneath(path, r.Path) {
			return true
		}
	}
	return false
}

// beneath tells whether path is folder or lies in it. Both are canonical.
func beneath(path, folder string) bool {
	return path == folder || folder == "/" || strings.HasPrefix(path, folder+"/")
}
