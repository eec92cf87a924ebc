"""Runs a command under sandlock, a peer, with rules like ours: ``sandlocked.py PORTS COMMAND...``."""

import sys

import sandlock

ports, *command = sys.argv[1:]
box = sandlock.Sandbox(
    fs_readable=["/"], fs_writable=["/dev/null"], net_allow=[f"127.0.0.1:{port}" for port in ports.split(",")]
)
sys.exit(box.run_interactive(command))
