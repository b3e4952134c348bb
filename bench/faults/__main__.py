"""``python -m bench.faults [--once|--quick|--whole|--orders] [--only=TEXT] [--limit=S] [--nodes=N] [--state=FILE]``."""

import sys

from bench.__main__ import main

if __name__ == "__main__":
    sys.exit(main(["faults", *sys.argv[1:]]))
