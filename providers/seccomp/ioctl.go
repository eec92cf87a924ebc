//go:build linux && (amd64 || arm64)

package seccomp

import (
	"slices"

	"golang.org/x/sys/unix"
)

// The type of an ioctl request (asm-generic/ioctl.h): the letter of the driver or file system that takes it.
const ioctlType = 0xff00

// Requests of linux/fs.h that x/sys does not name for every machine.
const (
	fsGetFlags   = 0x80086601
	fsGetFlags32 = 0x80046601
	fsGetVersion = 0x80087601
	fsGetXattr   = 0x801c581f
	fsFiemap     = 0xc020660b
	fileBlock    = 0x2 // FIGETBSZ
)

// Requests of asm-generic/ioctls.h and sockios.h that x/sys does not name for every machine.
const (
	fileNotExec = 0x5450 // FIONCLEX
	fileExec    = 0x5451 // FIOCLEX
	fileSize    = 0x5460 // FIOQSIZE
	fileNonblk  = 0x5421 // FIONBIO
	fileAsync   = 0x5452 // FIOASYNC
	fileOwner   = 0x8901 // FIOSETOWN
	fileReady   = 0x541b // FIONREAD
)

// typing are the requests that put characters into a terminal as if the user had typed them.
var typing = []uint32{unix.TIOCSTI, unix.TIOCLINUX}

// attributesRead are the requests of the three types below that only read.
var attributesRead = []uint32{fsGetFlags, fsGetFlags32, fsGetVersion, fsGetXattr, fsFiemap}

// attributeTypes are those of chattr(1), of generation numbers and of projects, verity and encryption. They work on a
// descriptor that was opened for reading, so that Landlock sees nothing of them.
var attributeTypes = []uint32{'f' << 8, 'v' << 8, 'X' << 8}

// Requests of single file systems that only read, or give what one file holds to another that was opened for writing.
var (
	sharing = []uint32{unix.FICLONE, unix.FICLONERANGE, unix.FIDEDUPERANGE}
	reading = []uint32{
		0x81009431, // FS_IOC_GETFSLABEL
		0x8400941f, // BTRFS_IOC_FS_INFO
		0x80089419, // BTRFS_IOC_SUBVOL_GETFLAGS
	}
)

// ownTypes are those of single file systems: they make, copy and remove trees and change attributes, on a descriptor that was
// opened for reading, and by paths that no one judges.
var ownTypes = []uint32{
	0x94 << 8, // btrfs: subvolumes and snapshots
	0xbc << 8, // bcachefs: the same
	'o' << 8,  // ocfs2: copies by path
	0xf5 << 8, // f2fs
	0x97 << 8, // ceph: layouts
	0xcf << 8, // cifs: attributes on the server
}

// fatAttributes is FAT_IOCTL_SET_ATTRIBUTES (linux/msdos_fs.h), whose type others have, too.
const fatAttributes = 0x40047211

// owning are the requests that name who gets a descriptor's signals, like F_SETOWN; the number is in memory.
var owning = []uint32{fileOwner, unix.SIOCSPGRP}

// everyday are the requests that programs make of what is no device: descriptors, sockets, and the terminal that they
// were started in. Where Landlock does not judge the operation of devices, these are all there is.
var everyday = []uint32{
	fileReady, fileNonblk, fileAsync, fileExec, fileNotExec, fileSize, fileBlock,
	unix.TCGETS, unix.TCSETS, unix.TCSETSW, unix.TCSETSF, unix.TCGETS2, unix.TCSETS2, unix.TCSETSW2, unix.TCSETSF2, unix.TCFLSH, unix.TCXONC, unix.TCSBRK, unix.TCSBRKP,
	unix.TIOCGWINSZ, unix.TIOCSWINSZ, unix.TIOCGPGRP, unix.TIOCSPGRP, unix.TIOCGSID, unix.TIOCSCTTY, unix.TIOCNOTTY,
	unix.TIOCOUTQ, unix.TIOCGPTN, unix.TIOCGPTPEER, unix.TIOCSPTLCK, unix.TIOCEXCL, unix.TIOCNXCL, unix.TIOCPKT,
	unix.SIOCATMARK, unix.SIOCGIFNAME, unix.SIOCGIFINDEX, unix.SIOCGIFCONF, unix.SIOCGIFFLAGS, unix.SIOCGIFADDR,
	unix.SIOCGIFNETMASK, unix.SIOCGIFHWADDR, unix.SIOCGIFMTU,
}

// ioctlRules: what a request does is its number, which a filter can read.
func ioctlRules(n Needs) []Rule {
	var t []Test
	on := func(requests []uint32, v Verdict) {
		for _, r := range requests {
			t = append(t, Test{[]Match{is(1, r)}, v})
		}
	}
	on(typing, refuse)
	on(attributesRead, Allow)
	on(sharing, Allow)
	on(reading, Allow)
	on([]uint32{fatAttributes}, refuse)
	for _, kind := range append(slices.Clone(attributeTypes), ownTypes...) {
		t = append(t, Test{[]Match{masked(1, ioctlType, kind)}, refuse})
	}
	if n.NoSignalScope {
		on(owning, refuse)
	}
	verdict := Allow
	if n.NoDeviceScope && !n.Devices {
		on(everyday, Allow)
		verdict = denied
	}
	return []Rule{{Call: Call{unix.SYS_IOCTL, "ioctl"}, Why: "not into the terminal, not a file's attributes; of devices, what Landlock judges", Tests: t, Verdict: verdict}}
}
