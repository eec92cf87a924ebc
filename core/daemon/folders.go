package daemon

import (
	"fmt"
	"os"
)

// makeFolders makes the folders that the profile wants made (expose-rw=FOLDER/), since the kernel grants only what is
// there, and gives those that it made. A learning run makes none: the program that is learned from may have to.
func (p *Plan) makeFolders() (map[string]bool, error) {
	if p.Learning() {
		return nil, nil
	}
	if p.provider.Holds().Mounts {
		for _, folder := range p.policy.ToMake() {
			if err := os.MkdirAll(folder, 0o700); err != nil {
				return nil, fmt.Errorf("making a folder that the program may not make: %w", err)
			}
		}
	}
	var made map[string]bool
	for _, e := range p.policy.Exposures() {
		if !e.Make {
			continue
		}
		if _, err := os.Lstat(e.Source); err == nil {
			continue // by a former start of this plan
		}
		if err := os.MkdirAll(e.Source, 0o777); err != nil { // less the umask, as the program itself would make it
			return nil, fmt.Errorf("%smaking the folder that the rule exposes: %w", place(e.Pos), err)
		}
		if made == nil {
			made = map[string]bool{}
		}
		made[e.Source] = true
	}
	return made, nil
}
