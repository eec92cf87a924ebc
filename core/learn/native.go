package learn

import (
	"net/netip"
	"strings"
)

// The observer of native code sees every call that reaches the kernel, those of Python among them. What Python told of too
// keeps Python's words and call site; here the observer's copies of it are taken out. What is left is native code's own.

// access is what was seen of a path.
type access uint8

const (
	wasTouched access = 1 << iota // looked at
	wasOpened                     // read or listed
	wasWritten
)

func accessOf(write bool) access {
	if write {
		return wasOpened | wasWritten
	}
	return wasOpened
}

// nativeFiles takes out what the observer saw and Python told of, or the import system did on its way.
func nativeFiles(entries []entry, passed map[string]access) []entry {
	told := map[string]access{}
	for path, a := range passed {
		told[path] = a
	}
	for _, e := range entries {
		switch {
		case e.Native:
		case looking[operation(e.Op)] && !e.Write:
			told[e.Subject] |= wasTouched
		case strings.HasPrefix(e.Op, sqliteOps):
			told[e.Subject] |= accessOf(true) // opened for writing whatever is done with it: only SQLite knows
		default:
			told[e.Subject] |= accessOf(e.Write)
			if isExec(e) {
				told[resolved(e.Subject)] |= wasOpened
			}
		}
	}
	var out []entry
	for _, e := range entries {
		wanted := wasOpened
		if e.Write {
			wanted = wasWritten
		}
		if !e.Native || told[e.Subject]&wanted == 0 {
			out = append(out, e)
		}
	}
	return out
}

// sqliteOps begin the operations that the guard has from SQLite itself.
const sqliteOps = "sqlite3."

// lookUpSockets are those by which the C library asks a service of the machine for names and users. It does without where they
// are not to be had.
var lookUpSockets = []string{"/run/nscd/socket", "/var/run/nscd/socket", "/run/systemd/userdb/", "/run/systemd/resolve/"}

// nativeNet takes out what the observer saw and Python told of, and what the C library does by itself when it looks a name up:
// it connects a datagram socket to each address that was found, to learn by which of this machine's it would be reached.
func nativeNet(entries []entry) []entry {
	type place struct {
		op, proto string
		port      int
	}
	told := map[place]map[string]bool{}
	streams, looked := map[int]bool{}, map[string]bool{}
	for _, e := range entries {
		if e.Op == "resolve" {
			if !e.Native {
				looked[strings.ToLower(e.Host)] = true
			}
			streams[e.Port] = true // a look-up for that port
			continue
		}
		if e.Proto == "tcp" && e.Op == "connect" {
			streams[e.Port] = true
		}
		if !e.Native {
			at := place{e.Op, e.Proto, e.Port}
			if told[at] == nil {
				told[at] = map[string]bool{}
			}
			told[at][spelled(e.Host)] = true
		}
	}
	var out []entry
	for _, e := range entries {
		if e.Native {
			hosts := told[place{e.Op, e.Proto, e.Port}]
			switch {
			case e.Op == "resolve" && looked[strings.ToLower(e.Host)]:
				continue
			case hosts[spelled(e.Host)], hosts[byName] && e.Proto != "unix":
				continue
			case e.Proto == "udp" && e.Op == "connect" && (e.Port == 0 || streams[e.Port]):
				continue
			case e.Proto == "udp" && e.Op == "bind" && e.Port == 0 && spelled(e.Host) == anyHost:
				continue // as the kernel would with the first datagram
			case e.Proto == "unix" && lookUpSocket(e.Host):
				continue
			}
		}
		out = append(out, e)
	}
	return out
}

const (
	byName  = "\x00name" // a call that took a name, and so may have been for any address
	anyHost = "\x00any"
)

// spelled is a host in the form in which two calls are compared.
func spelled(host string) string {
	a, err := netip.ParseAddr(host)
	switch {
	case host == "" || err == nil && a.IsUnspecified():
		return anyHost
	case err == nil:
		return a.Unmap().WithZone("").String()
	case strings.HasPrefix(host, "/") || strings.HasPrefix(host, "@"):
		return host
	}
	return byName
}

func lookUpSocket(path string) bool {
	for _, s := range lookUpSockets {
		if path == s || strings.HasSuffix(s, "/") && strings.HasPrefix(path, s) {
			return true
		}
	}
	return false
}
