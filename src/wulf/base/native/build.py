"""Find the MPI libraries of this machine and build the probe, and other programs, against each, once."""

from __future__ import annotations

import hashlib
import logging
import os
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from importlib import resources
from pathlib import Path

import msgspec

from wulf.base import locations
from wulf.base.errors import BuildError, UsageError
from wulf.base.native import cmake
from wulf.base.records import Operation
from wulf.base.text import nearest, printable

_LOG = logging.getLogger("wulf")

#: Beside the programs that come with the package: the digest of the sources that they are made of.
PREBUILT_OF = "SOURCES"
#: The program that replays traces.
REPLAY = "wulf-replay"
#: Programs that need no MPI library, and those that are built for each.
WITHOUT_MPI = ("wulf-probe-net", "wulf-dgemm", "wulf-delay", "wulf-guard", "wulf-guard-faults", REPLAY)
WITH_MPI = (
    *(
        "wulf-probe-mpi",
        "wulf-heat",
        "wulf-farm",
        "wulf-search",
        "wulf-start",
        "wulf-ep",
        "wulf-is",
        "wulf-cg",
        "wulf-emulate",
    ),
    *("libwulf-profile.so", "libwulf-tracer.so"),
)
#: Where distributions and the Python-index wheels put compiler wrappers that are not on the PATH.
_USUAL_PLACES = (
    "/usr/lib64/openmpi/bin/mpicc",
    "/usr/lib64/mpich/bin/mpicc",
    "/usr/lib/x86_64-linux-gnu/openmpi/bin/mpicc",
    "/opt/intel/oneapi/mpi/latest/bin/mpicc",
)
#: What users call libraries.
_NAMES = ("openmpi", "mpich", "intelmpi", "mvapich")
_USUAL_NAMES = ("mpicc.openmpi", "mpicc.mpich", "mpicc")
#: Names in what ldd prints → family, the first that is there: MPICH, and what is made of it, is libmpi.so.12 too.
_FAMILIES = {"libmpich": "mpich", "libmpi.so.12": "mpich", "libmpi.so": "openmpi"}

#: What ``mpicc -v`` of Intel's library begins with.
_INTEL = re.compile(r"for the Intel\(R\) MPI Library (\S+)")
#: Of ``mpichversion``, which MVAPICH has, too.
_VERSION = re.compile(r"^(MPICH|MVAPICH[0-9]*) Version:\s*(\S+)", re.MULTILINE)
#: Of the files that programs are built from.
_SUFFIXES = {".c", ".h", ".inc", ".cpp", ".hpp", ".txt", ".cmake"}


class MpiLibrary(msgspec.Struct, frozen=True, kw_only=True):
    """An MPI library that a probe can be built with."""

    compiler: str
    #: ``openmpi`` or ``mpich``: the family, which is also the launcher's name.
    family: str
    version: str
    #: Its own launcher, where it is not that of the family.
    own_launcher: str = ""

    @property
    def launcher(self) -> str:
        """What starts its jobs: a name of `wulf.node.cluster.launcher`."""
        return self.own_launcher or self.family

    @property
    def mpirun(self) -> str:
        """The library's own ``mpirun``, beside its compiler; Debian's suffixes (``.mpich``) are kept."""
        path = Path(self.compiler)
        head, found, tail = path.name.rpartition("mpicc")
        return str(path.with_name(f"{head}mpirun{tail}")) if found else "mpirun"


class Probe(msgspec.Struct, frozen=True, kw_only=True):
    """A built program: a probe, or another one of ``native``."""

    path: Path
    #: First digits of the SHA-256 of the program; its name on the nodes contains it.
    digest: str
    mpi: MpiLibrary | None
    #: It came with the package: this machine has nothing to build it with.
    prebuilt: bool = False


def source_directory() -> Path:
    """Return the probe's sources: in the package when installed, beside it in a checkout."""
    package = Path(str(resources.files("wulf")))
    packaged, checkout = package / "native", package.parents[1] / "native"
    for place in (packaged, checkout):
        if (place / "CMakeLists.txt").is_file():
            return place
    raise BuildError(
        f"the probe's sources are missing (looked in {packaged} and {checkout}): install wulf again"
    )


def find_mpi(wanted: str | None = None) -> list[MpiLibrary]:
    """Return the MPI libraries of this machine, a site's own first.

    Parameters
    ----------
    wanted
        A compiler wrapper (path or name on the PATH), a family (``openmpi``, ``mpich``) or, of those that are made of
        MPICH, ``intelmpi`` or ``mvapich``; None for all.

    Raises
    ------
    BuildError
        `wanted` names something that does not exist or is no MPI compiler.
    """
    if wanted and wanted not in _NAMES:
        path = shutil.which(wanted)
        library = identify(path) if path else None
        if library is None:
            raise BuildError(
                f"{wanted!r} is not an MPI compiler: give the path of an mpicc, or one of {', '.join(_NAMES)}"
                + nearest(wanted, _NAMES)
            )
        return [library]
    found: dict[Path, MpiLibrary] = {}
    for candidate in _candidates():
        library = identify(candidate)
        if library is not None:
            found.setdefault(Path(candidate).resolve(), library)
    libraries = [library for library in found.values() if wanted in (None, library.family, library.launcher)]
    if wanted and not libraries:
        hint = f" (Debian: lib{wanted}-dev)" if wanted in ("openmpi", "mpich") else ""
        raise BuildError(f"no {wanted} on this machine: install it{hint}, or give --mpi PATH")
    return libraries


def may_be_mpi(wanted: str) -> bool:
    """Whether `wanted` can name an MPI library that this machine has not: a known name, a path, any ``mpicc``."""
    return wanted in _NAMES or "/" in wanted or "mpicc" in wanted


def family_of(linked: str) -> str | None:
    """Return the family of the MPI library in what ldd prints of a program; None where there is none in it."""
    return next((family for name, family in _FAMILIES.items() if name in linked), None)


def _candidates() -> list[str]:
    beside_python = Path(sys.executable).parent / "mpicc"
    names = [shutil.which(name) for name in _USUAL_NAMES]
    places = [*names, *_USUAL_PLACES, str(beside_python)]
    return [place for place in places if place and os.access(place, os.X_OK)]


def identify(compiler: str) -> MpiLibrary | None:
    """Ask a compiler wrapper which library it is of; None when it is no MPI compiler."""
    shown = _ask([compiler, "--showme:version"])
    if shown and "Open MPI" in shown:
        return MpiLibrary(
            compiler=compiler,
            family="openmpi",
            version="Open MPI" + printable(shown.partition("Open MPI")[2].partition("(")[0], 60).rstrip(),
        )
    shown = _ask([compiler, "-show"])
    if shown and "-lmpi" in shown:
        return _of_mpich(compiler)
    return None


def _of_mpich(compiler: str) -> MpiLibrary:
    """Return the library of a compiler that is MPICH's, or that of one that is made of MPICH."""
    intel = _INTEL.search(_ask([compiler, "-v"]) or "")
    if intel:
        return MpiLibrary(
            compiler=compiler, family="mpich", version=f"Intel MPI {intel[1]}", own_launcher="intelmpi"
        )
    said = _ask([str(Path(compiler).with_name(_version_program(compiler)))]) or ""
    found = _VERSION.search(said)
    name, number = (found[1], printable(found[2], 60)) if found else ("MPICH", "(version unknown)")
    return MpiLibrary(
        compiler=compiler,
        family="mpich",
        version=f"{name} {number}",
        own_launcher="mvapich" if name.startswith("MVAPICH") else "",
    )


def _version_program(compiler: str) -> str:
    return Path(compiler).name.replace("mpicc.mpich", "mpichversion").replace("mpicc", "mpichversion")


def _ask(argv: Sequence[str]) -> str | None:
    try:
        answer = subprocess.run(argv, capture_output=True, text=True, timeout=20, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return answer.stdout if answer.returncode == 0 else None


def cache_directory() -> Path:
    """Return where built probes are kept."""
    return locations.cache() / "probe"


def build(mpi: MpiLibrary | None) -> Probe:
    """Build the socket probe (`mpi` None) or the MPI probe, unless it has been built from these sources.

    Raises
    ------
    BuildError
        A tool is missing or the compiler refuses; the text holds its last words and the log's place.
    """
    return build_program(_program_name(mpi), mpi)


def is_built(mpi: MpiLibrary | None) -> bool:
    """Return whether the probe has been built from these sources, so that `build` takes no time."""
    return (cache_directory() / _fingerprint(source_directory(), mpi) / _program_name(mpi)).is_file()


def build_program(name: str, mpi: MpiLibrary | None) -> Probe:
    """Build any program of ``native``, which has the name of its target, unless it has been built from these sources.

    Raises
    ------
    BuildError
        As of `build`.
    """
    source = source_directory()
    directory = cache_directory() / _fingerprint(source, mpi)
    program = directory / name
    lacking = _lacking(name)
    ready = _prebuilt(name, source) if lacking else None
    if not program.is_file():
        if lacking and ready is None:
            raise BuildError(_how_to_build(name, lacking))
        with cmake.only_one(directory):
            if program.is_file():
                _LOG.debug("%s: another has built it meanwhile", program)
            elif ready is not None:
                _LOG.info("%s: taken as it came with wulf, as there is no %s here", name, lacking)
                shutil.copyfile(ready, program)
                program.chmod(0o755)
            else:
                _compile(source, directory, [name], mpi)
    return _built(program, mpi, prebuilt=ready is not None)


def build_all(mpi: MpiLibrary | None) -> list[Probe]:
    """Build all programs for an MPI library, or (None) all that need none, with one run of cmake.

    Raises
    ------
    BuildError
        As of `build`.
    """
    source = source_directory()
    directory = cache_directory() / _fingerprint(source, mpi)
    names = WITHOUT_MPI if mpi is None else WITH_MPI
    if not all((directory / name).is_file() for name in names):
        for name in names:
            if lacking := _lacking(name):
                raise BuildError(_how_to_build(name, lacking))
        with cmake.only_one(directory):
            missing = [name for name in names if not (directory / name).is_file()]
            if missing:
                _compile(source, directory, missing, mpi)
    return [_built(directory / name, mpi) for name in names]


def _built(program: Path, mpi: MpiLibrary | None, *, prebuilt: bool = False) -> Probe:
    digest = hashlib.sha256(program.read_bytes()).hexdigest()[:16]
    return Probe(path=program, digest=digest, mpi=mpi, prebuilt=prebuilt)


def _how_to_build(name: str, lacking: str) -> str:
    return (
        f"{name} is built on first use, and there is no {lacking} here: install a compiler, cmake and make "
        "(Debian: apt-get install build-essential cmake; RHEL: dnf install gcc gcc-c++ cmake make)"
    )


def operations(probe: Probe) -> list[Operation]:
    """Operations of a built probe, as its ``--list`` says."""
    answer = _ask([str(probe.path), "--list"])
    if answer is None:
        raise BuildError(f"{probe.path} --list fails: delete it, it will be built again")
    try:
        return msgspec.json.decode(answer, type=list[Operation])
    except msgspec.DecodeError as error:
        raise BuildError(
            f"{probe.path} --list is not understood ({error}): delete it, it will be built again"
        ) from error


def find(name: str, known: Mapping[str, Operation]) -> Operation | None:
    """Return the operation of a name, which may have a number after a colon; None where there is none.

    Raises
    ------
    UsageError
        It takes no such number.
    """
    if name in known:
        return known[name]
    base, colon, number = name.partition(":")
    if not colon or base not in known:
        return None
    takes = known[base].parameter
    if takes is None:
        raise UsageError(f"{name}: {base} takes no number")
    if not (number.isascii() and number.isdigit() and takes.low <= int(number) <= takes.high):
        raise UsageError(f"{name}: {base} takes a number ({takes.name}) from {takes.low} to {takes.high}")
    return msgspec.structs.replace(known[base], name=name)


def built_operations() -> list[Operation]:
    """Operations of the probes that have been built; nothing is built for it."""
    source = source_directory()
    found: dict[str, Operation] = {}
    for mpi in (None, *find_mpi()[:1]):
        program = cache_directory() / _fingerprint(source, mpi) / _program_name(mpi)
        if program.is_file():
            found |= {op.name: op for op in operations(Probe(path=program, digest="", mpi=mpi))}
    return list(found.values())


def _program_name(mpi: MpiLibrary | None) -> str:
    return "wulf-probe-net" if mpi is None else "wulf-probe-mpi"


def _fingerprint(source: Path, mpi: MpiLibrary | None) -> str:
    """Digest of the sources, the library and the compiler: what a built probe depends on."""
    digest = hashlib.sha256(source_digest(source).encode())
    digest.update(repr(mpi).encode())
    digest.update(compiler_version().encode())
    return digest.hexdigest()[:20]


def source_digest(source: Path) -> str:
    """Return the digest of all sources of native programs."""
    digest = hashlib.sha256()
    for file in sorted(path for path in source.rglob("*") if path.suffix in _SUFFIXES):
        digest.update(str(file.relative_to(source)).encode() + b"\0" + file.read_bytes() + b"\0")
    return digest.hexdigest()


def _prebuilt(name: str, source: Path) -> Path | None:
    """Return the program of these sources that came with the package for this processor; None where none did."""
    place = Path(str(resources.files("wulf"))) / "prebuilt"
    program = place / platform.machine() / name
    try:
        made_of = (place / PREBUILT_OF).read_text(encoding="ascii").strip()
    except OSError:
        return None
    return program if program.is_file() and made_of == source_digest(source) else None


def _lacking(name: str) -> str:
    """Return what there is not to build a program with; empty where all is there."""
    needed = [("cmake",), (os.environ.get("CC", "cc"), "gcc", "clang"), ("make", "ninja")]
    if name == REPLAY:
        needed.append((os.environ.get("CXX", "c++"), "g++", "clang++"))
    words = ("cmake", "C compiler", "make", "C++ compiler")
    return next((word for word, names in zip(words, needed, strict=False) if not any(map(_found, names))), "")


def compiler_version() -> str:
    """First line of what the C compiler says about itself."""
    said = _ask([os.environ.get("CC", "cc"), "--version"]) or ""
    return printable(said.partition("\n")[0], 100) or "unknown"


def _found(name: str) -> str | None:
    """Return where a program is, on the PATH or, as the Python package index has it, beside Python."""
    beside = Path(sys.executable).with_name(name)
    return shutil.which(name) or (str(beside) if beside.is_file() else None)


def _compile(source: Path, directory: Path, targets: Sequence[str], mpi: MpiLibrary | None) -> None:
    found = _found("cmake")
    assert found is not None, "asked for before"
    # Only this one needs a compiler for C++20.
    options = [f"-DWULF_REPLAY={'ON' if REPLAY in targets else 'OFF'}"]
    if mpi is not None:
        options.append(f"-DWULF_MPI={mpi.compiler}")
    if _found("make") is None:
        options += ["-G", "Ninja"]
    cmake.make(found, source, directory, targets, options)
