"""``python -m bench.soak [--quick | --minutes=N | --from=DIR | …]``."""

import sys

from bench.soak import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
