"""Finding MPI libraries and building the probe."""

import pytest

from wulf.base.errors import BuildError
from wulf.base.native import build


def wrapper(directory, name, showme="", show="", version=""):
    path = directory / name
    path.write_text(
        "#!/bin/sh\n"
        f"case $1 in --showme:version) echo '{showme}'; [ -n '{showme}' ];; "
        f"-show) echo '{show}'; [ -n '{show}' ];; *) exit 1;; esac\n"
    )
    path.chmod(0o755)
    if version:
        teller = directory / name.replace("mpicc.mpich", "mpichversion").replace("mpicc", "mpichversion")
        teller.write_text(f"#!/bin/sh\necho 'MPICH Version:      {version}'\n")
        teller.chmod(0o755)
    return str(path)


def test_open_mpi_is_recognised(tmp_path):
    found = build.identify(wrapper(tmp_path, "mpicc", showme="mpicc: Open MPI 5.0.3 (Language: C)"))
    assert (found.family, found.version) == ("openmpi", "Open MPI 5.0.3")
    assert found.mpirun == str(tmp_path / "mpirun")


@pytest.mark.parametrize("libraries", ["gcc -L/usr/lib -lmpich", "gcc -L/opt/lib -lmpi"])
def test_mpich_is_recognised(tmp_path, libraries):
    found = build.identify(wrapper(tmp_path, "mpicc.mpich", show=libraries, version="4.0.2"))
    assert (found.family, found.version) == ("mpich", "MPICH 4.0.2")
    assert found.mpirun == str(tmp_path / "mpirun.mpich")


def test_a_version_that_is_not_told_is_unknown(tmp_path):
    assert "unknown" in build.identify(wrapper(tmp_path, "mpicc", show="gcc -lmpi")).version


@pytest.mark.parametrize(
    ("linked", "family"),
    [
        ("libmpich.so.12 => /usr/lib/x86_64-linux-gnu/libmpich.so.12", "mpich"),
        # MPICH as Spack, Fedora and Intel have it.
        ("libmpi.so.12 => /opt/spack/lib/libmpi.so.12", "mpich"),
        ("libmpi.so.40 => /usr/lib/x86_64-linux-gnu/libmpi.so.40", "openmpi"),
        ("libopenblas.so.0 => /usr/lib/libopenblas.so.0", None),
    ],
)
def test_the_family_of_a_program_is_what_it_is_linked_with(linked, family):
    assert build.family_of(f"\tlinux-vdso.so.1\n\t{linked} (0x00007f)\n\tlibc.so.6\n") == family


def test_another_compiler_is_none_of_them(tmp_path):
    assert build.identify(wrapper(tmp_path, "mpicc", show="gcc -O2")) is None
    with pytest.raises(BuildError, match="is not an MPI compiler"):
        build.find_mpi(str(tmp_path / "mpicc"))
    with pytest.raises(BuildError, match="nonesuch"):
        build.find_mpi("nonesuch")


def test_build_is_cached_and_a_broken_compiler_is_named(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    broken = build.MpiLibrary(compiler=wrapper(tmp_path, "mpicc"), family="openmpi", version="none")
    with pytest.raises(BuildError, match="cannot be built"):
        build.build(broken)
    first = build.build(None)
    stamp = first.path.stat().st_mtime_ns
    assert build.build(None) == first
    assert first.path.stat().st_mtime_ns == stamp
    names = {operation.name for operation in build.operations(first)}
    assert {"tcp_rr", "udp_rr", "tcp_stream", "empty"} <= names


@pytest.fixture
def bare(tmp_path, monkeypatch):
    """A machine with nothing to build with; what `add` names is there."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    there = set()
    monkeypatch.setattr(build, "_found", lambda name: name if name in there else None)
    return there


def test_what_is_missing_is_named_with_its_packages(bare):
    for there, word in (((), "cmake"), (("cmake",), "C compiler"), (("cmake", "gcc"), "make")):
        bare.clear()
        bare.update(there)
        with pytest.raises(
            BuildError, match=f"built on first use, and there is no {word} here: install .*apt-get"
        ):
            build.build(None)
    bare.update(("cmake", "cc", "ninja"))
    with pytest.raises(BuildError, match="there is no C\\+\\+ compiler here"):
        build.build_program(build.REPLAY, None)


def test_the_probe_that_came_along_is_used_where_it_is_of_these_sources(bare, tmp_path, monkeypatch):
    source = build.source_directory()
    program = tmp_path / "prebuilt" / build.platform.machine() / "wulf-probe-net"
    program.parent.mkdir(parents=True)
    program.write_text('#!/bin/sh\necho "[]"\n')
    real = build.resources.files
    monkeypatch.setattr(build.resources, "files", lambda name: tmp_path if name == "wulf" else real(name))
    monkeypatch.setattr(build, "source_directory", lambda: source)
    (tmp_path / "prebuilt" / build.PREBUILT_OF).write_text("another\n")
    with pytest.raises(BuildError, match="there is no cmake here"):
        build.build(None)
    (tmp_path / "prebuilt" / build.PREBUILT_OF).write_text(f"{build.source_digest(source)}\n")
    found = build.build(None)
    assert found.prebuilt
    assert build.operations(found) == []
    assert build.build(None) == found
