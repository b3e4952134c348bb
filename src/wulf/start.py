"""Where the ``wulf`` program begins: Ctrl-C has an answer before anything else is imported."""

import os
import signal
import sys
from importlib import import_module
from types import FrameType

_INTERRUPTED = 130


def _end(_number: int, _frame: FrameType | None) -> None:
    # Nothing has been begun yet. An exception could get lost in the middle of an import.
    os.write(sys.stderr.fileno(), b"wulf: interrupted\n")
    os._exit(_INTERRUPTED)


def run() -> None:
    """Entry point of the ``wulf`` program."""
    # A shell script lets its background jobs ignore Ctrl-C: that stays so.
    listening = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if listening:
        signal.signal(signal.SIGINT, _end)
    main = import_module("wulf.face.cli.main")
    try:
        if listening:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        main.run()
    except KeyboardInterrupt:  # before the command line has begun, or while it ends
        _end(signal.SIGINT, None)
    finally:
        # All is said and done: while Python takes itself apart, an interrupt would only change the exit code.
        if listening:
            signal.signal(signal.SIGINT, signal.SIG_IGN)


if __name__ == "__main__":
    run()
