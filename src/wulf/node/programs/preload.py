"""A library of ours before a program's MPI library, in every rank.  Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping

#: What starts the ranks of Open MPI, or a variable of a script for it, where options follow.
_STARTER = re.compile(
    r"""(?<![\w.-])(?:mpirun|mpiexec|orterun|prterun)(?:\.openmpi)?['"}]*(?=[\s\\]+-)""", re.IGNORECASE
)
#: Its option that passes on a variable; other programs have one of that name, too.
_EXPORT = re.compile(r"\s-x\s")


def preloaded(command: str, family: str, library: str, own: Mapping[str, str]) -> tuple[str, dict[str, str]]:
    """Return a command for a shell, and its environment, with which every rank loads a library.

    Open MPI passes on to other nodes only what it is told to, and takes that from its environment or from its options,
    not from both. Where only some ranks had the library, they would wait for the others for ever.

    Parameters
    ----------
    family
        Of the program's MPI library: ``openmpi`` or ``mpich``.
    library
        Path of the library, on all nodes.
    own
        What the library takes from its environment.
    """
    variables = {"LD_PRELOAD": library, **own}
    if family == "openmpi" and _EXPORT.search(command):
        options = "".join(f" -x {name}" for name in variables)
        text, starters = _STARTER.subn(lambda found: found[0] + options, command)
        if starters:
            return text, variables
    told = ";".join(f"{name}={value}" for name, value in variables.items())
    return command, {**variables, "OMPI_MCA_mca_base_env_list": told}
