"""How long work is ended early."""

from __future__ import annotations

import signal


def end_gently() -> None:
    """Let the end of the session or of the job (SIGHUP, SIGTERM) do what Ctrl-C does.

    Under nohup the hang-up stays ignored.
    """
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, signal.default_int_handler)
