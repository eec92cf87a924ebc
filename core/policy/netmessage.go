package policy

import (
	"fmt"
	"net"
	"strconv"
	"strings"
)

// refuseNet words a refusal: DENIED, protocol, operation, host, port, direction.
func (p *Policy) refuseNet(n NetQuestion, line int, note string) Decision {
	op, known := netOps[n.Op]
	if !known {
		op.words = safe(n.Op)
	}
	dir := "OUT"
	if op.dir == dirIn {
		dir = "IN"
	}
	subject := n.Host
	if subject != "" {
		subject = safe(subject)
	}
	if n.Proto != "unix" {
		subject = net.JoinHostPort(strings.Trim(subject, "[]"), strconv.Itoa(n.Port))
	}
	text := fmt.Sprintf("DENIED %s %s %s %s", safe(n.Proto), op.words, subject, dir)
	d := p.refuse("net", n.Op, subject, text, line)
	d.Note = note
	if line == 0 && note == "" {
		d.Add = p.suggestNet(n, dir)
	}
	return d
}

// suggestNet returns the lines that would allow it, narrowest first.
func (p *Policy) suggestNet(n NetQuestion, dir string) []string {
	port := strconv.Itoa(n.Port)
	if n.Port == 0 && dir == "OUT" {
		port = "443"
	}
	if n.Proto == "icmp" {
		port = "*"
	}
	form := func(network string) string {
		return "net=ALLOW|" + strings.ToUpper(n.Proto) + "|" + network + "|" + port + "|" + dir
	}
	a, ok := hostAddr(n.Host)
	if !ok {
		if name := hostName(n.Host); name != "" {
			return []string{form(name)}
		}
		return nil
	}
	out := []string{form(unfold(a).String())}
	for name, s := range setNames {
		if s == setOf(unfold(a)) && s != metadata {
			out = append(out, form(name))
		}
	}
	return out
}
