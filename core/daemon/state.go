package daemon

import (
	"encoding/hex"
	"hash/fnv"
	"os"
	"path/filepath"
)

// The state folder remembers which profiles were used on this machine: one small file each, named by the profile's path.
// A profile that was once there and is gone may have been deleted by the code that it held, so it is never learned anew in
// silence (hardening.md 1).

// StateFolder is where it is kept, "" where the environment has no place for it. A sandbox must not write there.
func StateFolder(env map[string]string) string {
	base := env["XDG_STATE_HOME"]
	if !filepath.IsAbs(base) {
		home := env["HOME"]
		if !filepath.IsAbs(home) {
			return ""
		}
		base = filepath.Join(home, ".local", "state")
	}
	return filepath.Join(base, "pysandboxes")
}

// record is the file that stands for a profile.
func record(env map[string]string, profilePath string) string {
	folder := StateFolder(env)
	if folder == "" {
		return ""
	}
	hash := fnv.New128a() // tells files apart, no more
	hash.Write([]byte(profilePath))
	return filepath.Join(folder, "profiles", hex.EncodeToString(hash.Sum(nil)))
}

// journal is the beginning of the names of files that keep what learning runs into a profile see, until it is written.
func journal(env map[string]string, profilePath string) string {
	path := record(env, profilePath)
	if path == "" {
		return ""
	}
	return filepath.Join(filepath.Dir(filepath.Dir(path)), "learning", filepath.Base(path))
}

// knownProfile gives the record of a profile that a former run used, "" where there is none.
func knownProfile(env map[string]string, profilePath string) string {
	path := record(env, profilePath)
	if path == "" {
		return ""
	}
	if _, err := os.Lstat(path); err != nil {
		return ""
	}
	return path
}

// remember notes that a profile was used. A place that cannot be written is no reason not to start.
func remember(env map[string]string, profilePath string) {
	path := record(env, profilePath)
	if path == "" || knownProfile(env, profilePath) != "" {
		return
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return
	}
	defer f.Close()
	_, _ = f.WriteString(profilePath + "\n")
}
