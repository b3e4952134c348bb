"""``python -m bench.faults [--once|--quick|--whole|--orders] [--only=TEXT] [--limit=S] [--nodes=N] [--state=FILE]``."""

import sys

from bench.faults.run import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
