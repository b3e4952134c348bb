"""``python -m bench.soak [--quick | --minutes=N | --from=DIR | …]``."""

import sys

from bench.__main__ import main

if __name__ == "__main__":
    sys.exit(main(["soak", *sys.argv[1:]]))
