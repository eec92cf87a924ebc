"""``python -m pysandboxes``: the ``pysandboxes`` command of this interpreter."""

import sys

from pysandboxes._cli import main

if __name__ == "__main__":
    sys.exit(main())
