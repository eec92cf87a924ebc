"""A program of another language makes the connection: ``started_client.py PORTS PROGRAM``."""

import json
import subprocess
import sys

done = subprocess.run([sys.argv[2], str(json.loads(sys.argv[1])["http"])], capture_output=True, text=True, timeout=20)
print(done.stdout, done.returncode)
if done.returncode:
    raise OSError(done.stderr)
