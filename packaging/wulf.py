#!/usr/bin/PYTHON
"""Start wulf with what its package has brought along, and with nothing of the user's own site-packages."""

import sys

sys.path.insert(0, "/usr/lib/wulf/site-packages")
from wulf.start import run

run()
