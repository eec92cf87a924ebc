package learn

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/vmihailenco/msgpack/v5"
	"golang.org/x/sys/unix"
)

// journal keeps what a run has seen until it stands in the profile, for the case that the run itself is killed: each new
// observation is one write to a file of its own, which outlives the process. It is held by a lock, so that one whose run is
// gone is known and taken over by the next run into the same profile.
//
// A place that cannot be written makes a journal that keeps nothing.
type journal struct {
	prefix string // of the file names: the folder, and what stands for the profile
	file   *os.File
	former []*os.File // of runs that were killed, locked by this one
}

// maxJournal bounds one file; what comes later is kept in memory only, as all of it is.
const maxJournal = 64 << 20

// record is one entry: an observation, a module that a process did not find, or what the import system passed by.
type record struct {
	Observation
	Absent bool
	Passed bool
}

// openJournal takes over what killed runs left behind, and hands it to r. Its own file is made when there is something to keep.
func openJournal(prefix string, r *Recorder) (j *journal, found int) {
	j = &journal{prefix: prefix}
	paths, _ := filepath.Glob(escapeGlob(prefix) + ".*")
	for _, path := range paths {
		f, err := os.OpenFile(path, os.O_RDWR|unix.O_NOFOLLOW|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
		if err != nil {
			continue
		}
		info, err := f.Stat()
		if err != nil || !info.Mode().IsRegular() || unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) != nil {
			f.Close()
			continue
		}
		j.former = append(j.former, f)
		for in := msgpack.NewDecoder(io.LimitReader(f, maxJournal)); ; found++ {
			var one record
			if in.Decode(&one) != nil { // the end, or an entry that the end of the run cut short
				break
			}
			switch {
			case one.Absent:
				r.Absent(one.Subject, one.Process)
			case one.Passed:
				r.Passed(one.Subject, one.Write)
			default:
				r.Add(one.Observation)
			}
		}
	}
	return j, found
}

// keep writes one entry. The first one makes the file.
func (j *journal) keep(r record) {
	if j == nil || j.prefix == "" {
		return
	}
	if j.file == nil && j.open() != nil {
		j.prefix = ""
		return
	}
	data, err := msgpack.Marshal(&r)
	if err != nil {
		return
	}
	if at, err := j.file.Seek(0, io.SeekCurrent); err != nil || at+int64(len(data)) > maxJournal {
		return
	}
	if n, err := j.file.Write(data); err != nil && n > 0 {
		j.prefix = "" // half an entry: nothing after it could be read
	}
}

func (j *journal) open() error {
	if err := os.MkdirAll(filepath.Dir(j.prefix), 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(fmt.Sprintf("%s.%d", j.prefix, os.Getpid()), os.O_CREATE|os.O_EXCL|os.O_RDWR|unix.O_CLOEXEC|unix.O_NOFOLLOW, 0o600)
	if errors.Is(err, os.ErrExist) { // of another recorder in this process, or of a killed one that had our number
		f, err = os.CreateTemp(filepath.Dir(j.prefix), filepath.Base(j.prefix)+".*")
	}
	if err != nil {
		return err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		f.Close()
		return err
	}
	j.file = f
	return nil
}

// done lets go of all that was kept: it stands in the profile. What comes later makes a new file.
func (j *journal) done() {
	if j == nil {
		return
	}
	for _, f := range append(j.former, j.file) {
		if f != nil {
			os.Remove(f.Name()) // under the lock
			f.Close()
		}
	}
	j.file, j.former = nil, nil
}
