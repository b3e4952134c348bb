"""``python -m bench.faults [--once | --quick | --whole | --orders] [--only=TEXT] [--limit=SECONDS] [--nodes=N]``."""

import sys

from bench.faults.run import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
