package interpreter

import (
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strings"

	"github.com/pysandboxes/pysandboxes/core/policy"
)

// need is a path that an interpreter or the C library reads on its own account, with the reason.
type need struct {
	path string
	why  string
}

// always is readable in every sandbox.
var always = []need{
	{"/etc/ld.so.cache", "the dynamic linker finds shared libraries by it"},
	{"/etc/ld.so.preload", "the dynamic linker asks for it at every start; usually absent"},
	{"/etc/localtime", "time.localtime"},
	{"/usr/share/zoneinfo", "zoneinfo, and the C library for TZ"},
	{"/usr/share/terminfo", "curses, readline and the prompt of 3.13"},
	{"/lib/terminfo", "the same"},
	{"/etc/terminfo", "the same"},
	{"/usr/lib/locale", "setlocale"},
	{"/usr/share/locale", "messages of the C library"},
	{"/etc/locale.alias", "where a link of that folder leads: each setlocale reads it"},
	{"/etc/inputrc", "readline"},
	{"/etc/ssl/certs", "the CA store: Debian, Alpine, Arch"},
	{"/etc/ssl/cert.pem", "the CA store: Alpine"},
	{"/etc/ssl/openssl.cnf", "OpenSSL's settings, read when it is loaded"},
	{"/etc/pki/tls/certs", "the CA store: Fedora"},
	{"/etc/pki/tls/cert.pem", "the CA store: Fedora"},
	{"/etc/pki/tls/openssl.cnf", "OpenSSL's settings: Fedora"},
	{"/etc/pki/ca-trust/extracted", "what Fedora's store links to"},
	{"/etc/crypto-policies", "what Fedora's openssl.cnf includes"},
	{"/etc/ca-certificates/extracted", "what Arch's store links to"},
	{"/usr/share/ca-certificates", "what Debian's store links to"},
	{"/usr/local/share/ca-certificates", "the same, the machine's own"},
	{"/dev/null", "os.devnull"},
	{"/dev/zero", "profile.md names it"},
	{"/dev/urandom", "os.urandom where getrandom is not to be had"},
	{"/dev/random", "libraries that seed from it"},
	{"/proc/sys/vm/overcommit_memory", "the allocator of CPython 3.13, before anything else"},
	{"/sys/devices/system/cpu/online", "os.cpu_count"},
	{"/sys/devices/system/cpu/possible", "thread pools of native libraries"},
}

// netFiles is readable where a rule lets anything out: the C library resolves names by these.
var netFiles = []need{
	{"/etc/resolv.conf", "which resolver to ask"},
	{"/etc/hosts", "names of this machine's own"},
	{"/etc/nsswitch.conf", "in which order to look"},
	{"/etc/host.conf", "how to read /etc/hosts"},
	{"/etc/gai.conf", "which address family comes first"},
	{"/etc/services", "socket.getservbyname"},
	{"/etc/protocols", "socket.getprotobyname"},
}

// prefixParts are the folders of a prefix that are the interpreter's own. A prefix itself is not opened as a whole: a
// virtual environment may have been made in the root of a project, and the prefix of a system's Python is /usr.
var prefixParts = []string{"lib", "lib64", "bin", "include", "share", "ssl", "etc", "pyvenv.cfg"}

// systemParts are those of a prefix that holds the whole system.
func systemParts(version string) []string {
	return []string{"lib/python" + version, "lib64/python" + version, "lib/python3", "include/python" + version}
}

var systemPrefixes = map[string]bool{"/": true, "/usr": true, "/usr/local": true}

// libraryFolder reports whether a folder of the system holds shared libraries and little else: /usr/lib64, or
// /usr/lib/x86_64-linux-gnu.
func libraryFolder(folder string) bool {
	rest, found := strings.CutPrefix(strings.TrimPrefix(strings.TrimPrefix(folder, "/usr"), "/local"), "/lib")
	if !found {
		return false
	}
	size, triple, nested := strings.Cut(rest, "/")
	if size != "" && size != "64" && size != "32" {
		return false
	}
	return !nested || (strings.Contains(triple, "-linux-") && !strings.Contains(triple, "/"))
}

// runtime builds the runtime set: what the interpreter said, and the tables above, as canonical paths.
func (a *answer) runtime(exe string) policy.Runtime {
	rt := policy.Runtime{Stdlib: present(a.Stdlib), Site: present(a.Site)}
	read := existing(always)
	for _, prefix := range unique(a.Prefixes) {
		parts := prefixParts
		if systemPrefixes[prefix] {
			parts = systemParts(a.Version)
		}
		for _, part := range parts {
			read = append(read, filepath.Join(prefix, part))
		}
	}
	read = append(read, a.Stdlib...)
	read = append(read, a.Site...)
	read = append(read, a.PthCode...)
	read = append(read, a.TZPath...)
	for _, path := range a.CA {
		read = append(read, path)
		read = append(read, filepath.Join(filepath.Dir(path), "openssl.cnf"))
	}
	for _, lib := range a.Libs {
		if folder := filepath.Dir(lib); libraryFolder(folder) {
			read = append(read, folder)
		} else {
			read = append(read, lib)
		}
	}
	// The loader and libraries that are opened by name later (NSS, gconv) live in these, whatever the maps say.
	for _, folder := range []string{"/lib", "/lib64", "/usr/lib64"} {
		if real, err := filepath.EvalSymlinks(folder); err == nil && libraryFolder(real) && real != "/usr/lib" && real != "/lib" {
			read = append(read, folder)
		}
	}
	read = append(read, a.Package)
	rt.Executables = present([]string{exe, a.Executable, a.BaseExecutable})
	rt.Read = tidy(append(append(read, rt.Executables...), a.Libs...))
	rt.Libs = within(rt.Read, a.Libs)
	return rt
}

// within keeps those of the paths that are entries of a tidy list themselves; the others lie beneath a folder of it, and a
// rule for each would cost the start of every sandbox a little.
func within(list, paths []string) []string {
	entries := make(map[string]bool, len(list))
	for _, path := range list {
		entries[path] = true
	}
	return slices.DeleteFunc(present(paths), func(path string) bool { return !entries[path] })
}

func existing(table []need) []string {
	paths := make([]string, 0, len(table))
	for _, row := range table {
		if _, err := os.Lstat(row.path); err == nil {
			paths = append(paths, row.path)
		}
	}
	return paths
}

// present keeps what exists and makes it canonical.
func present(paths []string) []string {
	var out []string
	for _, path := range paths {
		if !filepath.IsAbs(path) {
			continue
		}
		if real, err := filepath.EvalSymlinks(path); err == nil {
			out = append(out, real)
		}
	}
	return unique(out)
}

// tidy makes a list of what exists: canonical, sorted, nothing beneath another entry.
func tidy(paths []string) []string {
	all := present(paths)
	have := make(map[string]bool, len(all))
	for _, path := range all {
		have[path] = true
	}
	kept := all[:0]
	for _, path := range all {
		if !covered(path, have) {
			kept = append(kept, path)
		}
	}
	sort.Strings(kept)
	return kept
}

// covered reports whether a folder above path is in the set.
func covered(path string, have map[string]bool) bool {
	for dir := filepath.Dir(path); dir != "/" && dir != "."; dir = filepath.Dir(dir) {
		if have[dir] {
			return true
		}
	}
	return false
}

func folderExists(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}
