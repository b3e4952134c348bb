"""What an MPI library says of its own parameters."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

import msgspec

from wulf.base.errors import BuildError
from wulf.base.native.build import Probe
from wulf.base.records import MpiParameter
from wulf.base.text import last_line

#: A library that finds no network waits for one.
_LIMIT_S = 60.0
#: Names of parameters that only one kind of MPICH reads → what its device is called then.
_DEVICES = (
    (re.compile(r"_CH3_|_NEMESIS_"), "ch3"),
    (re.compile(r"_CH4_"), "ch4"),
    (re.compile(r"_OFI_"), "ofi"),
    (re.compile(r"_UCX_"), "ucx"),
)
_DEVICE = re.compile(r"Device:\s+(\S+)")
#: What the names of parameters in an environment begin with.
_PREFIXES = ("OMPI_MCA_", "PRTE_MCA_", "PMIX_MCA_", "MPIR_CVAR_", "MPICH_", "UCX_", "FI_")
_UCX = re.compile(r"^(UCX_\w+)=(.*)$", re.MULTILINE)
#: What ranks are bound to: of Open MPI 4, and of PRRTE, whose own tool (prte_info 3.0) does not list it.
_BINDING = "hwloc_base_binding_policy"
_PRRTE_BINDING = "PRTE_MCA_hwloc_default_binding_policy"


class _Version(msgspec.Struct, frozen=True, tag="library", tag_field="type"):
    """The first line: which library, in its own words."""

    version: str


class _Parameter(msgspec.Struct, frozen=True, tag="parameter", tag_field="type"):
    name: str
    value: str
    about: str
    values: dict[str, str]


def parameters(probe: Probe, env: Mapping[str, str]) -> dict[str, MpiParameter]:
    """Name → parameter of the library that a probe was built with, as it is on this machine.

    Parameters
    ----------
    env
        What jobs of the site have; of this process's own environment no parameter counts.

    Those that the library knows and does not read, because it was built for another network, are not among them; where
    it uses UCX, UCX's own are, and where PRRTE starts its jobs (Open MPI 5), what that binds ranks to.

    Raises
    ------
    BuildError
        The library does not say; what it says instead is in the text.
    """
    plain = {name: value for name, value in os.environ.items() if not name.startswith(_PREFIXES)}
    printed = _printed([str(probe.path), "--parameters"], plain | dict(env))
    decoder = msgspec.json.Decoder(_Version | _Parameter)
    try:
        said = decoder.decode_lines(printed)
    except msgspec.DecodeError as error:
        raise BuildError(
            f"{probe.path} --parameters is not understood ({error}): delete it, it will be built again"
        ) from None
    device = next(
        (found[1] for one in said if isinstance(one, _Version) and (found := _DEVICE.search(one.version))), ""
    )
    known = {
        one.name: MpiParameter(name=one.name, value=one.value, about=one.about, values=one.values)
        for one in said
        if isinstance(one, _Parameter) and _reads(device, one.name)
    }
    if "ucx" in device:
        known |= _of_ucx(plain | dict(env))
    if probe.mpi is not None and probe.mpi.family == "openmpi" and _BINDING not in known:
        known |= _of_prrte(Path(probe.mpi.mpirun).with_name("prterun"), env)
    return known


def _reads(device: str, name: str) -> bool:
    """Whether a library of this device (``ch4:ucx``; empty for one without) reads a parameter."""
    return not device or all(kind in device for pattern, kind in _DEVICES if pattern.search(name))


def _of_ucx(env: Mapping[str, str]) -> dict[str, MpiParameter]:
    """Return the parameters of UCX; none where its tool is not installed."""
    program = shutil.which("ucx_info")
    if program is None:
        return {}
    said = _printed([program, "-c"], env).decode(errors="replace")
    return {
        name: MpiParameter(name=name, value=value, about="", values={}) for name, value in _UCX.findall(said)
    }


def _of_prrte(starter: Path, env: Mapping[str, str]) -> dict[str, MpiParameter]:
    """Return what is known of PRRTE; nothing where it does not start the library's jobs."""
    if shutil.which(starter) is None:
        return {}
    about = "what ranks are bound to, where neither mpirun nor srun is told"
    value = env.get(_PRRTE_BINDING, "")
    return {_PRRTE_BINDING: MpiParameter(name=_PRRTE_BINDING, value=value, about=about, values={})}


def _printed(words: list[str], env: Mapping[str, str]) -> bytes:
    try:
        answer = subprocess.run(words, capture_output=True, timeout=_LIMIT_S, check=False, env=env)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise BuildError(f"{shlex.join(words)}: {error}") from None
    if answer.returncode != 0:
        raise BuildError(
            f"{shlex.join(words)}: {last_line(answer.stderr) or f'exit code {answer.returncode}'}"
        )
    return answer.stdout
