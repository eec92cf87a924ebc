package profile

// Providers are the values of os-sandbox.
var Providers = []string{"auto", "landlock", "unshare", "bwrap", "firejail", "qemu", "subprocess", "none"}

// openProviders hand any further key on to their program: `bwrap.KEY=value` becomes `--KEY=value`.
var openProviders = []string{"bwrap"}

// ProviderKeys are the keys `provider.key`. landlock, subprocess and none have none.
var ProviderKeys = []Key{
	{Name: "qemu.use_kvm", Kind: Choice, Choices: []string{"auto", "true", "false"}, Scalar: true, Grammar: "qemu.use_kvm=auto or true or false", Meaning: "hardware virtualisation; auto proves it by booting"},
	{Name: "qemu.memory", Kind: Size, Scalar: true, Grammar: "qemu.memory=512MB", Meaning: "memory of the guest"},
	{Name: "qemu.cpus", Kind: Count, Scalar: true, Grammar: "qemu.cpus=2", Meaning: "processors of the guest"},
	{Name: "qemu.kernel", Kind: Text, Scalar: true, Grammar: "qemu.kernel=/boot/vmlinuz", Meaning: "kernel image of the guest"},
	{Name: "qemu.start_timeout", Kind: Duration, Scalar: true, Grammar: "qemu.start_timeout=60s", Meaning: "longest time of a boot"},
	{Name: "qemu.show_boot_console", Kind: Bool, Scalar: true, Grammar: "qemu.show_boot_console=true or false", Meaning: "prints the guest's console while it boots"},
	{Name: "qemu.virtfs", Kind: Choice, Choices: []string{"auto", "on", "off"}, Scalar: true, Grammar: "qemu.virtfs=auto or on or off", Meaning: "shares exposed folders live"},
	{Name: "qemu.virtfs_security_model", Kind: Choice, Choices: []string{"passthrough", "mapped-xattr", "mapped-file", "none"}, Scalar: true, Grammar: "qemu.virtfs_security_model=mapped-xattr", Meaning: "how owners show in the guest"},
	{Name: "bwrap.share-net", Kind: Text, Scalar: true, EmptyOK: true, Grammar: "bwrap.share-net=yes", Meaning: "gives up the network boundary", Risk: "The host's network is open to native code."},
	{Name: "bwrap.unshare-net", Kind: Text, Scalar: true, EmptyOK: true, Grammar: "bwrap.unshare-net=yes", Meaning: "an empty network"},
	{Name: "firejail.net", Kind: Text, Scalar: true, Grammar: "firejail.net=none", Meaning: "firejail's network option"},
	{Name: "firejail.seccomp", Kind: Text, EmptyOK: true, Grammar: "firejail.seccomp=syscall,…", Meaning: "firejail's seccomp option"},
	{Name: "firejail.seccomp.keep", Kind: Text, Grammar: "firejail.seccomp.keep=syscall,…", Meaning: "system calls that stay"},
	{Name: "firejail.seccomp.block", Kind: Text, Grammar: "firejail.seccomp.block=syscall,…", Meaning: "system calls that go"},
	{Name: "firejail.rlimit-as", Kind: Size, Scalar: true, Grammar: "firejail.rlimit-as=1GB", Meaning: "address space"},
	{Name: "firejail.rlimit-cpu", Kind: Duration, Scalar: true, Grammar: "firejail.rlimit-cpu=30s", Meaning: "processor time"},
	{Name: "firejail.rlimit-fsize", Kind: Size, Scalar: true, Grammar: "firejail.rlimit-fsize=1GB", Meaning: "size of a file"},
	{Name: "firejail.rlimit-nofile", Kind: Count, Scalar: true, Grammar: "firejail.rlimit-nofile=256", Meaning: "open files"},
	{Name: "firejail.rlimit-nproc", Kind: Count, Scalar: true, Grammar: "firejail.rlimit-nproc=64", Meaning: "processes"},
	{Name: "firejail.rlimit-sigpending", Kind: Count, Scalar: true, Grammar: "firejail.rlimit-sigpending=64", Meaning: "pending signals"},
	{Name: "unshare.net", Kind: Choice, Choices: []string{"broker", "slirp"}, Scalar: true, Grammar: "unshare.net=broker or slirp", Meaning: "how the network is reached"},
	{Name: "unshare.user", Kind: Bool, Scalar: true, Grammar: "unshare.user=true or false", Meaning: "user namespace"},
	{Name: "unshare.pid", Kind: Bool, Scalar: true, Grammar: "unshare.pid=true or false", Meaning: "process namespace"},
	{Name: "unshare.ipc", Kind: Bool, Scalar: true, Grammar: "unshare.ipc=true or false", Meaning: "IPC namespace"},
	{Name: "unshare.uts", Kind: Bool, Scalar: true, Grammar: "unshare.uts=true or false", Meaning: "host name namespace"},
	{Name: "unshare.cgroup", Kind: Bool, Scalar: true, Grammar: "unshare.cgroup=true or false", Meaning: "cgroup namespace"},
	{Name: "unshare.time", Kind: Bool, Scalar: true, Grammar: "unshare.time=true or false", Meaning: "time namespace"},
}

func init() {
	for i := range ProviderKeys {
		ProviderKeys[i].Family = FamilyProvider
	}
}
