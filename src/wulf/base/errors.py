"""The exceptions of wulf and the exit code each one ends with."""

from __future__ import annotations

EXIT_ERROR = 1
EXIT_USAGE = 2
EXIT_FINDINGS = 3
EXIT_INTERRUPTED = 130


class WulfError(Exception):
    """Something the user can act on; the text names the file, line or node and what to do."""

    exit_code = EXIT_ERROR


class UsageError(WulfError):
    """An argument or a combination of arguments that cannot be."""

    exit_code = EXIT_USAGE


class ConfigError(WulfError):
    """A file of the user that cannot be read or does not validate."""


class InventoryError(WulfError):
    """A node set, group or allocation that cannot be resolved."""


class TransportError(WulfError):
    """A node that could not be reached or did not behave."""


class OverdueError(TransportError):
    """A command on a node that goes on printing beyond the time it has."""


class UnreachableError(TransportError):
    """Nodes that cannot be reached any more."""

    def __init__(self, message: str, nodes: list[str]) -> None:
        super().__init__(message)
        self.nodes = nodes


class SchedulerError(WulfError):
    """Slurm that does not answer, or does not take or know a job."""


class BuildError(WulfError):
    """The probe could not be built."""


class ProbeError(WulfError):
    """A launch that ended with an error or broke the protocol."""


class StoreError(WulfError):
    """A run directory that cannot be read, written or migrated."""


class LabError(WulfError):
    """The virtual cluster could not be raised, used or taken down."""


class ImportFormatError(WulfError):
    """An output of another benchmark that cannot be read; names the file and the line."""


class AnalysisError(WulfError):
    """Data from which the asked-for figure cannot be derived."""


class TraceError(WulfError):
    """A trace of a program that cannot be read, written or replayed."""


class NoStreamError(TraceError):
    """No rank of a program that was traced left anything."""
