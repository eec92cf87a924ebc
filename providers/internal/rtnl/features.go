//go:build linux && (amd64 || arm64)

package rtnl

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Requests of SIOCETHTOOL (linux/ethtool.h).
const (
	setInfo     = 0x37 // ETHTOOL_GSSET_INFO
	getStrings  = 0x1b // ETHTOOL_GSTRINGS
	setFeatures = 0x3b // ETHTOOL_SFEATURES
	featureSet  = 4    // ETH_SS_FEATURES
	nameLength  = 32   // ETH_GSTRING_LEN
	maxFeatures = 512  // there are some sixty
	blockBits   = 32
)

// SwitchOff takes a feature from a device of the calling thread's network namespace, by the name that ethtool -k shows.
func SwitchOff(device, feature string) error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	names, err := featureNames(fd, device)
	if err != nil {
		return fmt.Errorf("features of %s: %w", device, err)
	}
	for at := 0; at*nameLength < len(names); at++ {
		name, _, _ := bytes.Cut(names[at*nameLength:(at+1)*nameLength], []byte{0})
		if string(name) != feature {
			continue
		}
		blocks := (len(names)/nameLength + blockBits - 1) / blockBits
		request := binary.NativeEndian.AppendUint32(number32(setFeatures), uint32(blocks))
		for block := range blocks { // which bits are meant, and what they shall be
			valid := uint32(0)
			if block == at/blockBits {
				valid = 1 << (at % blockBits)
			}
			request = binary.NativeEndian.AppendUint64(request, uint64(valid))
		}
		return tool(fd, device, request)
	}
	return fmt.Errorf("%s has no feature %s", device, feature)
}

// featureNames are the names of the kernel's features, of the same length each.
func featureNames(fd int, device string) ([]byte, error) {
	count := append(binary.NativeEndian.AppendUint32(number32(setInfo), 0), structure(&[2]uint64{1 << featureSet})...)
	if err := tool(fd, device, count); err != nil {
		return nil, err
	}
	const head = 12 // the request, the set, how many
	n := binary.NativeEndian.Uint32(count[16:])
	if n > maxFeatures {
		return nil, unix.E2BIG
	}
	request := make([]byte, head+n*nameLength)
	binary.NativeEndian.PutUint32(request, getStrings)
	binary.NativeEndian.PutUint32(request[4:], featureSet)
	binary.NativeEndian.PutUint32(request[8:], n)
	return request[head:], tool(fd, device, request)
}

// tool makes one request (struct ifreq with a pointer).
func tool(fd int, device string, request []byte) error {
	var ifreq struct {
		name [unix.IFNAMSIZ]byte
		data unsafe.Pointer
		_    [16]byte
	}
	copy(ifreq.name[:unix.IFNAMSIZ-1], device)
	ifreq.data = unsafe.Pointer(&request[0])
	_, _, e := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.SIOCETHTOOL, uintptr(unsafe.Pointer(&ifreq)))
	runtime.KeepAlive(request)
	if e != 0 {
		return e
	}
	return nil
}
