package providers

import (
	"fmt"

	"github.com/pysandboxes/pysandboxes/providers/contract"
	"github.com/pysandboxes/pysandboxes/providers/landlock"
)

// NetworkHere says for people how network rules are held here, and why so. word is the choice of the host's environment, "" where
// there is none; namespaces and descriptors tell what this machine permits: a network namespace of a sandbox's own, and pidfd_getfd.
func NetworkHere(word string, namespaces, descriptors bool) (string, error) {
	how, err := NetworkOf(word)
	if err != nil {
		return "", err
	}
	why := "the default"
	if how == "" {
		how = landlock.DefaultNetwork
	} else {
		why = fmt.Sprintf("PYSANDBOXES_NETWORK=%s", word)
	}
	if how == contract.Either {
		how = contract.Walled
		if !namespaces {
			how, why = contract.Unwalled, "no namespaces can be made here"
		} else if !descriptors {
			how, why = contract.Unwalled, "the supervisor may not take descriptors here"
		}
	}
	switch {
	case how == contract.Walled && !descriptors:
		return fmt.Sprintf("%s (%s), but pidfd_getfd is not permitted here: a profile with network rules does not start", how, why), nil
	case !descriptors:
		return fmt.Sprintf("%s (%s), and pidfd_getfd is not permitted here: the supervisor makes the sandbox's sockets itself; datagrams and looking names up are refused", how, why), nil
	case how == contract.Walled && !namespaces:
		return fmt.Sprintf("%s (%s), but no namespaces can be made here: a profile with network rules does not start", how, why), nil
	case how == contract.Walled:
		return fmt.Sprintf("%s (%s): the sandbox has a network of its own, out of which only the supervisor leads", how, why), nil
	}
	walled := "walled can be had as well: PYSANDBOXES_NETWORK=walled"
	if !namespaces {
		walled = "walled cannot be had: no namespaces can be made here"
	}
	return fmt.Sprintf("%s (%s): the supervisor makes the sandbox's calls on its own sockets; %s", how, why, walled), nil
}

// FilesHere says for people what is held here of what lies beneath exposed folders and is not for the program.
func FilesHere(namespaces bool) string {
	if !namespaces {
		return "whole folders alone: a profile that lies beneath expose-rw=, or an ignore= rule inside an exposed folder, does not start, since no namespaces can be made here; /dev/shm is the host's where it is exposed"
	}
	return "what ignore= hides and a profile beneath expose-rw= are held for native code too, and /dev/shm is the sandbox's own: it starts with files of its own where its profile needs them"
}
