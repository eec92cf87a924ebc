package control

import (
	"fmt"
	"net"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/pysandboxes/pysandboxes/bindings/border"
	"github.com/pysandboxes/pysandboxes/core/nearest"
	"github.com/pysandboxes/pysandboxes/core/policy"
	"github.com/pysandboxes/pysandboxes/core/profile"
)

// explained is Explain's answer to one question.
type explained struct {
	Allow    bool          `json:"allow"`
	Family   string        `json:"family"`
	Op       string        `json:"op"`
	Subject  border.Text   `json:"subject"`
	Category string        `json:"category"`
	Rule     border.Text   `json:"rule"` // file:line, "" where no rule decided
	Line     border.Text   `json:"line"` // that rule
	Add      []border.Text `json:"add"`  // lines that would allow it, narrowest first
	Text     border.Text   `json:"text"` // all of it for people
}

// question is one form of question: its word, what follows it, and how the policy is asked.
type question struct {
	word, argument string
	ask            func(pol *policy.Policy, r profileRequest, argument string) (policy.Decision, error)
}

// questions is the table of `pysandboxes explain`.
var questions = []question{
	{"open", "PATH", askFile(policy.Read)},
	{"write", "PATH", askFile(policy.Write)},
	{"import", "NAME", func(pol *policy.Policy, _ profileRequest, name string) (policy.Decision, error) {
		return pol.Import(name, ""), nil
	}},
	{"call", "FUNCTION", func(pol *policy.Policy, _ profileRequest, name string) (policy.Decision, error) {
		return pol.Call([]string{name}, ""), nil
	}},
	{"connect", "HOST:PORT", askNet("connect", "tcp")},
	{"sendto", "HOST:PORT", askNet("sendto", "udp")},
	{"bind", "HOST:PORT", askNet("bind", "tcp")},
	{"resolve", "HOST", func(pol *policy.Policy, _ profileRequest, name string) (policy.Decision, error) {
		return pol.Net(policy.NetQuestion{Op: "resolve", Proto: "tcp", Host: name}), nil
	}},
	{"env", "NAME", func(pol *policy.Policy, _ profileRequest, name string) (policy.Decision, error) {
		return pol.Env(name), nil
	}},
	{"eval", "", func(pol *policy.Policy, _ profileRequest, _ string) (policy.Decision, error) {
		return pol.Eval("eval"), nil
	}},
	{"exec", "", func(pol *policy.Policy, _ profileRequest, _ string) (policy.Decision, error) {
		return pol.Eval("exec"), nil
	}},
	{"compile", "", func(pol *policy.Policy, _ profileRequest, _ string) (policy.Decision, error) {
		return pol.Eval("compile"), nil
	}},
}

// Explain says which rule decides a question. The request is CheckProfile's with question, a list such as ["connect",
// "example.com:443"]; an empty one asks what the profile allows. The answer is JSON: allow, family, op, subject, category, rule, line,
// add, text.
func Explain(request string) (string, error) {
	r, err := readProfileRequest(request)
	if err != nil {
		return "", err
	}
	prof, pol, _, err := r.compile()
	if err != nil {
		return "", err
	}
	if len(r.Question) == 0 {
		return border.JSON(struct {
			Text border.Text `json:"text"`
		}{border.Text(overview(prof))})
	}
	asked, err := find(plain(r.Question))
	if err != nil {
		return "", err
	}
	argument := ""
	if len(r.Question) > 1 {
		argument = string(r.Question[1])
	}
	d, err := asked.ask(pol, r, argument)
	if err != nil {
		return "", err
	}
	answer := explained{
		Allow: d.Allow, Family: d.Family, Op: d.Op, Subject: border.Text(d.Subject), Category: d.Category,
		Line: border.Text(d.RuleText), Add: texts(d.Add), Text: border.Text(d.Message()),
	}
	if !d.Rule.IsZero() {
		answer.Rule = border.Text(d.Rule.String())
	}
	return border.JSON(answer)
}

// find picks the question's row, and checks that it has its argument.
func find(words []string) (question, error) {
	var known []string
	for _, q := range questions {
		form := strings.TrimSpace(q.word + " " + q.argument)
		known = append(known, form)
		if q.word != words[0] {
			continue
		}
		if wanted := 1 + min(len(q.argument), 1); len(words) != wanted {
			return question{}, fmt.Errorf("the question has %d words; it is: %s", len(words), form)
		}
		return q, nil
	}
	hint := ""
	names := make([]string, len(questions))
	for i, q := range questions {
		names[i] = q.word
	}
	if word := nearest.Word(words[0], names); word != "" {
		hint = fmt.Sprintf(" (did you mean %s?)", word)
	}
	return question{}, fmt.Errorf("%q is no question%s; there are: %s", words[0], hint, strings.Join(known, ", "))
}

// askFile asks about a path. Its symlinks are resolved where it exists, as the policy wants paths.
func askFile(access policy.Access) func(*policy.Policy, profileRequest, string) (policy.Decision, error) {
	return func(pol *policy.Policy, r profileRequest, path string) (policy.Decision, error) {
		if !filepath.IsAbs(path) {
			path = filepath.Join(string(r.Cwd), path)
		}
		path = filepath.Clean(path)
		if real, err := filepath.EvalSymlinks(path); err == nil {
			path = real
		} else if folder, err := filepath.EvalSymlinks(filepath.Dir(path)); err == nil {
			path = filepath.Join(folder, filepath.Base(path))
		}
		return pol.File(path, access, "open"), nil
	}
}

// askNet asks about an address. A name is asked about as a program would: by looking it up first.
func askNet(op, proto string) func(*policy.Policy, profileRequest, string) (policy.Decision, error) {
	return func(pol *policy.Policy, _ profileRequest, argument string) (policy.Decision, error) {
		host, port, err := net.SplitHostPort(argument)
		if err != nil {
			return policy.Decision{}, fmt.Errorf("%q is not HOST:PORT (an IPv6 address stands in brackets)", argument)
		}
		number, err := strconv.ParseUint(port, 10, 16)
		if err != nil {
			return policy.Decision{}, fmt.Errorf("%q is not a port from 0 to 65535", port)
		}
		if net.ParseIP(host) != nil {
			return pol.Net(policy.NetQuestion{Op: op, Proto: proto, Host: host, Port: int(number)}), nil
		}
		resolve := pol.Net(policy.NetQuestion{Op: "resolve", Proto: proto, Host: host, Port: int(number)})
		if !resolve.Allow {
			return resolve, nil
		}
		for _, address := range pol.Pinned(host) {
			return pol.Net(policy.NetQuestion{Op: op, Proto: proto, Host: address.String(), Port: int(number)}), nil
		}
		return resolve, nil
	}
}

// overview lists the rules in force as they stand, by file.
func overview(p *profile.Profile) string {
	if len(p.Rules) == 0 {
		return "The profile has no rule: nothing is allowed but what the interpreter itself needs."
	}
	var b strings.Builder
	for _, rule := range p.Rules {
		fmt.Fprintf(&b, "%s: %s\n", rule.Pos, strings.TrimSpace(rule.Source))
	}
	b.WriteString("All else is refused.")
	return b.String()
}
