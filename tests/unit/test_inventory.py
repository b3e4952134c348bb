"""Cluster files: what is accepted, and what is said about what is not."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from ClusterShell.NodeSet import NodeSet
from hypothesis import given
from hypothesis import strategies as st

from wulf.base.errors import ConfigError, InventoryError, UsageError, WulfError
from wulf.base.interfaces import interface_of
from wulf.base.nodeset import fold
from wulf.node.cluster import inventory, schema
from wulf.node.cluster.config import resolve
from wulf.node.cluster.names import expand, in_order, is_node_name

FULL = """
[cluster]
name = "rack \\"A\\""
nodes = "node[01-04],gpu1"
interface = "eth1"
transport = "ssh"
shared_cpus = [["node01", "node03"], ["@two"]]
links = [
    ["node01:eth2=10.1.0.0/31", "node02:eth2=10.1.0.1/31"],
    ["node02:eth3", "node03=10.1.0.3/31"],
    ["node03", "gpu1"],
]
[groups]
two = "node02,node04"
all = "@two,gpu1"
[interfaces]
enp3s0 = "gpu1"
"bond0.7" = "node03"
[ssh]
user = "root"
options = ["-oPort=2222"]
connect_timeout_s = 3
fanout = 8
gateways = { gw1 = "@two" }
[addresses]
node01 = "198.18.0.11"
gpu1 = "fd00::1"
[change]
user = "hpc"
become = "sudo"
[mpi]
compiler = "/opt/x y/mpicc"
launcher = "openmpi"
env = { A = "b \\u007f" }
arguments = ["--mca", "x", "1"]
"""


def test_a_full_file() -> None:
    config = inventory.parse(FULL, "cluster.toml")
    assert config.nodes == ("node01", "node02", "node03", "node04", "gpu1")
    assert [link.nodes for link in config.links] == [
        ("node01", "node02"),
        ("node02", "node03"),
        ("node03", "gpu1"),
    ]
    assert [(end.interface, end.address) for link in config.links[:2] for end in link.ends] == [
        ("eth2", "10.1.0.0/31"),
        ("eth2", "10.1.0.1/31"),
        ("eth3", None),
        (None, "10.1.0.3/31"),
    ]
    assert [link.nodes for link in config.without(["node03"]).links] == [("node01", "node02")]
    assert config.groups == {"two": ("node02", "node04"), "all": ("node02", "node04", "gpu1")}
    assert config.shared_cpus == (("node01", "node03"), ("node02", "node04"))
    assert (config.shares_cpu("node03", "node01"), config.shares_cpu("node01", "node02")) == (True, False)
    assert (config.address("node01"), config.address("node02")) == ("198.18.0.11", "node02")
    assert config.ssh.gateways == {"gw1": "node[02,04]"}
    assert config.ssh.connect_timeout_s == 3.0
    assert (config.ssh.user, config.for_changes().ssh.user) == ("root", "hpc")
    assert config.mpi.env == {"A": "b \x7f"}
    with pytest.raises(UsageError, match="names no node"):
        config.select("")
    assert config.select("@all,node03") == ["node02", "node04", "gpu1", "node03"]


def test_an_interface_may_have_another_name_on_some_nodes() -> None:
    names = inventory.parse(FULL, "cluster.toml").interface
    assert [interface_of(names, node) for node in ("node01", "node03", "gpu1")] == [
        "eth1",
        "bond0.7",
        "enp3s0",
    ]
    assert str(names) == "eth1, enp3s0 on gpu1, bond0.7 on node03"
    left = inventory.parse(FULL, "cluster.toml").without(["gpu1", "node03"])
    assert left.interface == "eth1"


@pytest.mark.parametrize(
    ("names", "why"),
    [
        ('eth2 = "node09"', r"\[interfaces\] eth2: node09 is not a node of this cluster"),
        ('eth2 = "n1"\neth3 = "n[1-2]"', r"\[interfaces\] eth3: n1 has eth2 already"),
        ('"a/b" = "n1"', r"\[interfaces\] a/b is not an interface"),
    ],
)
def test_names_of_interfaces_that_cannot_be_are_refused(names: str, why: str) -> None:
    with pytest.raises(WulfError, match=why):
        inventory.parse(f'[cluster]\nnodes = "n[1-4]"\n[interfaces]\n{names}\n', "cluster.toml")


def test_a_cable_that_is_the_interface_of_its_own_node_is_refused() -> None:
    head = '[cluster]\nnodes = "n[1-2]"\ninterface = "eth1"\nlinks = [["n1:eth2", "n2:eth1"]]\n'
    text = f'{head}[interfaces]\neth2 = "n2"\n'
    assert inventory.parse(text, "x").links
    with pytest.raises(ConfigError, match="link 1: eth2 leads to the switch"):
        inventory.parse(text.replace('eth2 = "n2"', 'eth2 = "n1"'), "x")


def test_rendering_and_reading_gives_the_same() -> None:
    config = inventory.parse(FULL, "x")
    assert inventory.parse(inventory.render(config), "x") == config
    assert inventory.parse(inventory.render(inventory.local()), "this machine") == inventory.local()


def test_every_key_is_explained() -> None:
    text = inventory.render(inventory.from_nodes("n[1-2]"))
    for key in (
        "interface",
        "transport",
        "shared_cpus",
        "links",
        "config",
        "user",
        "fanout",
        "gateways",
        "become",
        "compiler",
        "launcher",
    ):
        assert f"\n{key} = " in text or f"\n# {key} = " in text


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('[cluster]\nnodes = "a"\nname =', "c.toml: not TOML: Invalid value (at line 3, where"),
        ('nodes = "a"', "c.toml: unknown [nodes]"),
        ('[clutser]\nnodes = "a"', "c.toml: unknown [clutser]; did you mean 'cluster'?"),
        ('[cluster]\nnode = "a"', "c.toml: unknown key 'node' in [cluster]; did you mean 'nodes'?"),
        (
            '[cluster]\nnodes = "a"\n[ssh]\nport = 1',
            "c.toml: unknown key 'port' in [ssh] (allowed: config, user, opt",
        ),
        ("[ssh]\n", "c.toml: [cluster] nodes is missing"),
        ("[cluster]\nnodes = 3", "c.toml: [cluster] nodes: expected text in quotes, got a whole number"),
        ('[cluster]\nnodes = ""', "c.toml: [cluster] nodes is empty"),
        ('[cluster]\nnodes = "node[01-"', "c.toml: [cluster] nodes: 'node[01-' is not a node set"),
        (
            '[cluster]\nnodes = "@rak1"\n[groups]\nrack1 = "a"',
            "no group 'rak1' (groups: rack1); did you mean 'rack1'?",
        ),
        ('[cluster]\nnodes = "@x:all"', "there is no group 'x:all' (groups: none)"),
        ('[cluster]\nnodes = "@a"\n[groups]\na = "@b"\nb = "@a"', "contains itself"),
        ('[cluster]\nnodes = "-oProxyCommand=x"', "is not a node name"),
        ('[cluster]\nnodes = "n[1-999999]"', "more than 100000 nodes"),
        ('[cluster]\nnodes = "n[1-9999][1-9999]"', "more than 100000 nodes"),
        ('[cluster]\nnodes = "a"\ninterface = "eth0; id"', "is not an interface"),
        (
            '[cluster]\nnodes = "a"\ntransport = "shh"',
            "[cluster] transport = 'shh'; did you mean 'ssh'? (allowed: ssh, ",
        ),
        ('[cluster]\nnodes = "a,b"\nshared_cpus = [["a"]]', "shared_cpus, set 1: needs at least two"),
        (
            '[cluster]\nnodes = "a,b"\nshared_cpus = [["a", "b"], ["a", "b"]]',
            "set 2: a is in the sets more than once",
        ),
        (
            '[cluster]\nnodes = "node1,b"\nshared_cpus = [["node2", "b"]]',
            "node2 is not a node of this cluster; did you mean 'node1'?",
        ),
        (
            '[cluster]\nnodes = "a"\n[addresses]\nb = "1.2.3.4"',
            "[addresses]: b is not a node of this cluster",
        ),
        ('[cluster]\nnodes = "a"\n[addresses]\na = "1.2.3.4/8"', "is neither an address nor a name"),
        ('[cluster]\nnodes = "a"\n[ssh]\nconnect_timeout_s = 0', "connect_timeout_s must be above 0"),
        ('[cluster]\nnodes = "a"\n[ssh]\nfanout = 0', "fanout must be from 1"),
        ('[cluster]\nnodes = "a"\n[ssh]\nconfig = "no such"', "[ssh] config: no such file"),
        ('[cluster]\nnodes = "a"\n[ssh]\nuser = "-x"', "is not a user name"),
        ('[cluster]\nnodes = "a"\n[change]\nuser = "-x"', "[change] user = '-x' is not a user name"),
        ('[cluster]\nnodes = "a"\n[change]\nbecome = "su"', "[change] become = 'su'"),
        ('[cluster]\nnodes = "a"\n[change]\nuser = "root"\nbecome = "sudo"', "a user other than root"),
        ('[cluster]\nnodes = "a"\n[ssh]\ngateways = { g = "b" }', "gateways.g: b is not a node"),
        ('[cluster]\nnodes = "a"\n[ssh]\ngateways = { "-g" = "a" }', "'-g' is not a node name"),
        ('[cluster]\nnodes = "a"\n[ssh]\ngateways = { g = "a", h = "a" }', "a has another gateway already"),
        (
            '[cluster]\nnodes = "a"\n[mpi]\nlauncher = "mpirun"',
            "[mpi] launcher = 'mpirun' (allowed: openmpi, mpich, srun, intelmpi, mvapich, mvapich-hydra)",
        ),
        (
            '[cluster]\nnodes = "a"\n[mpi]\nenv = { "A=B" = "x" }',
            "is not the name of an environment variable",
        ),
        ('[cluster]\nnodes = "a"\n[mpi]\ncompiler = "-x"', "must be a path or a name"),
        ('[cluster]\nnodes = "a"\n[groups]\n"a b" = "a"', "'a b' is not a group name"),
    ],
)
def test_what_is_wrong_is_named(text: str, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        inventory.parse(text, "c.toml")
    assert str(caught.value).startswith("c.toml: ")
    assert message in str(caught.value)


def linked(*links: str, more: str = "") -> str:
    return f'[cluster]\nnodes = "n[1-3]"\ninterface = "eth0"\nlinks = [{", ".join(links)}]\n{more}'


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (linked("3"), "[cluster] links[0]: expected a list, got a whole number"),
        (linked('["n1"]'), "links, link 1: has 1 ends instead of two: write NODE:INTERFACE=ADDRESS/PREFIX"),
        (
            linked('["n1", "n2"]', '["n1", "n4"]'),
            "links, link 2: n4 is not a node of this cluster",
        ),
        (linked('["n1:a", "n1:b"]'), "link 1: both ends are on n1: a link is between two nodes"),
        (linked('["", "n2"]'), "'' is not an end of a link"),
        (linked('["n1:", "n2"]'), "'' is not an interface; see `ip -br link` on n1"),
        (linked('["n1:e th", "n2"]'), "'e th' is not an interface"),
        (linked('["n1:eth0", "n2"]'), "link 1: eth0 leads to the switch, as [cluster] interface says"),
        (linked('["n1=10.0.0.1", "n2"]'), "'10.0.0.1' does not define a network for both ends"),
        (linked('["n1=10.0.0.1/32", "n2"]'), "'10.0.0.1/32' does not define a network"),
        (linked('["n1=fd00::1/64", "n2"]'), "'fd00::1/64' is not an IPv4 address with a prefix"),
        (linked('["n1=10.0.0.0/30", "n2"]'), "10.0.0.0/30 is a network or broadcast address"),
        (
            linked('["n1=10.0.0.1/30", "n2=10.0.1.2/30"]'),
            "link 1: 10.0.0.1/30 and 10.0.1.2/30 are not in one network: give both ends",
        ),
        (linked('["n1=10.0.0.1/30", "n2=10.0.0.2/29"]'), "are not in one network"),
        (
            linked('["n1=10.0.0.0/31", "n2=10.0.0.0/31"]'),
            "link 1: 10.0.0.0 is that of link 1, too",
        ),
        (
            linked('["n1:e=10.0.0.0/31", "n2"]', '["n1:e=10.0.0.2/31", "n3"]'),
            "link 2: e of n1 is that of link 1, too: each end needs its own interface and address",
        ),
        (
            linked('["n1=10.0.0.5/24", "n2"]', '["n2=10.0.0.65/26", "n3"]'),
            "link 2: 10.0.0.64/26 overlaps 10.0.0.0/24 of [cluster] links, link 1: give each link a network",
        ),
        (
            linked('["n1=10.0.0.5/24", "n2"]', more='[addresses]\nn3 = "10.0.0.7"'),
            "[addresses] n3: 10.0.0.7/32 overlaps 10.0.0.0/24 of [cluster] links, link 1",
        ),
    ],
)
def test_what_is_wrong_with_a_link_is_named(text: str, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        inventory.parse(text, "c.toml")
    assert str(caught.value).startswith("c.toml: ")
    assert message in str(caught.value)


@given(st.text(max_size=60), st.text(max_size=60))
def test_any_ends_are_a_link_or_a_clear_error(one: str, other: str) -> None:
    section = schema.ClusterSection(nodes="n[1-3]", links=[[one, other]])
    try:
        resolve(schema.Document(cluster=section), "x", Path())
    except ConfigError as error:
        assert "[cluster] links, link 1: " in str(error)


def test_thousands_of_links_load_fast() -> None:
    names = [f"n{number:04d}" for number in range(4096)]
    ends = [
        [
            f"{one}:e{axis}=10.{axis}.{number >> 7}.{number % 128 * 2}/31",
            f"{two}:f{axis}=10.{axis}.{number >> 7}.{number % 128 * 2 + 1}/31",
        ]
        for axis, step in ((0, 1), (1, 64))
        for number, (one, two) in enumerate(zip(names, names[step:] + names[:step], strict=True))
    ]
    section = schema.ClusterSection(nodes="n[0000-4095]", links=ends)
    began = time.process_time()  # comparing all links with all takes minutes
    assert len(resolve(schema.Document(cluster=section), "x", Path()).links) == 8192
    assert time.process_time() - began < 5


@given(st.text(max_size=200))
def test_any_text_is_a_cluster_or_a_clear_error(text: str) -> None:
    for attempt in (text, f"[cluster]\nnodes = {text}", f'[cluster]\nnodes = "{text}"'):
        try:
            config = inventory.parse(attempt, "c.toml")
        except WulfError as error:
            assert str(error).startswith("c.toml: ")
        else:
            assert all(is_node_name(node) for node in config.nodes)


def test_paths_are_relative_to_the_file(tmp_path: Path) -> None:
    (tmp_path / "my config").write_text("")
    path = tmp_path / "cluster.toml"
    path.write_text('[cluster]\nnodes = "a"\n[ssh]\nconfig = "my config"\n')
    assert inventory.load(path).ssh.config == str(tmp_path / "my config")


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no such file; `wulf init"):
        inventory.load(tmp_path / "cluster.toml")
    with pytest.raises(ConfigError, match="cannot be read"):
        inventory.load(tmp_path)
    (tmp_path / "bad").write_bytes(b"\xff")
    with pytest.raises(ConfigError, match="cannot be read"):
        inventory.load(tmp_path / "bad")


def test_thousands_of_nodes_load_fast() -> None:
    text = '[cluster]\nnodes = "rack[01-50]node[001-200]"\n[groups]\nfirst = "rack01node[001-200]"\n'
    text += "[addresses]\n"
    text += "".join(
        f'rack{rack:02}node{node:03} = "198.18.{rack}.{node}"\n'
        for rack in range(1, 51)
        for node in range(1, 201)
    )
    began = time.process_time()
    config = inventory.parse(text, "x")
    assert len(config.nodes) == 10_000
    assert time.process_time() - began < 5


def test_slurm() -> None:
    config = inventory.from_slurm({"SLURM_JOB_NODELIST": "node[01-03],gpu[1,3]", "SLURM_JOB_ID": "42"})
    assert config.nodes == ("node01", "node02", "node03", "gpu1", "gpu3")
    assert (config.name, config.mpi.launcher) == ("slurm-42", "srun")
    with pytest.raises(InventoryError, match="not in a Slurm allocation"):
        inventory.from_slurm({})
    with pytest.raises(InventoryError, match="SLURM_JOB_NODELIST: "):
        inventory.from_slurm({"SLURM_JOB_NODELIST": "node[01-;id"})


def test_local_is_two_ranks_on_one_machine() -> None:
    config = inventory.local()
    assert (len(config.nodes), config.transport) == (2, "local")
    assert {config.address(node) for node in config.nodes} == {"127.0.0.1"}


def test_padding_is_kept() -> None:
    assert (
        expand("n[8-10],n[08-10]") == ["n8", "n9", "n08", "n09", "n10"]
        or len(expand("n[8-10],n[08-10]")) == 5
    )
    assert expand(fold(["n1", "n01", "n001"])) == ["n1", "n01", "n001"]


def test_pairs() -> None:
    nodes = ["n1", "n2", "n3"]
    assert inventory.pairs("all", nodes) == [("n1", "n2"), ("n1", "n3"), ("n2", "n3")]
    assert inventory.pairs("ring", nodes) == [("n1", "n2"), ("n2", "n3"), ("n3", "n1")]
    assert inventory.pairs("ring", nodes[:2]) == [("n1", "n2")]
    assert inventory.pairs("n3:n1, n1:n2", nodes) == [("n3", "n1"), ("n1", "n2")]


@pytest.mark.parametrize(
    ("spec", "nodes", "message"),
    [
        ("all", ["n1"], "a pair needs two nodes; there is one: n1"),
        ("all", [], "there are none"),
        (
            "rin",
            ["n1", "n2"],
            "'rin' is not a pair; allowed: all, ring, or pairs like n1:n2; did you mean 'ring'?",
        ),
        ("n1:", ["n1", "n2"], "'n1:' is not a pair"),
        ("", ["n1", "n2"], "'' is not a pair"),
        ("n1:n2,", ["n1", "n2"], "'' is not a pair"),
        ("n1:nn2", ["n1", "n2"], "nn2 is not one of the nodes; did you mean 'n2'?"),
        ("n1:n1", ["n1", "n2"], "a node with itself"),
        ("n1:n2,n1:n2", ["n1", "n2"], "named twice"),
        ("all", [f"n{i}" for i in range(300)], "300 nodes make 44850 pairs"),
    ],
)
def test_pairs_that_cannot_be(spec: str, nodes: list[str], message: str) -> None:
    with pytest.raises(UsageError) as caught:
        inventory.pairs(spec, nodes)
    assert message in str(caught.value)


def cells_of(text: str) -> list[str]:
    return [str(name) for name in NodeSet(text)]


@given(
    st.lists(
        st.one_of(
            st.from_regex(r"[a-c][0-9]{0,3}", fullmatch=True),
            st.from_regex(r"[ab]\[[0-9]{1,2}(,[0-9]{1,2}){0,4}\]x?", fullmatch=True),
            st.from_regex(r"[ab]\[1-[2-9](/[12])?,0[1-5]\](-n\[1-3\])?", fullmatch=True),
        ),
        min_size=1,
        max_size=6,
    )
)
def test_names_are_those_of_clustershell_and_parts_stay_in_their_order(parts: list[str]) -> None:
    names = expand(",".join(parts))
    assert sorted(names) == sorted(cells_of(",".join(parts)))
    assert names == list(dict.fromkeys(name for part in parts for name in cells_of(part)))
    assert expand(in_order(names)) == names


def test_a_cluster_keeps_the_order_of_its_file() -> None:
    config = inventory.parse('[cluster]\nnodes = "delta,alpha,n[1-3],beta"\n', "test")
    assert config.nodes == ("delta", "alpha", "n1", "n2", "n3", "beta")
    assert inventory.parse(inventory.render(config), "test").nodes == config.nodes
    assert 'nodes = "delta,alpha,n[1-3],beta"' in inventory.render(config)


LONG = {
    "the same number": ("n[" + ",".join(["1"] * 100_000) + "]", 1),
    "the same name": (",".join(["n1"] * 100_000), 1),
    "odd numbers": ("n[" + ",".join(str(2 * n + 1) for n in range(50_000)) + "]", 50_000),
    "odd names": (",".join(f"n{2 * n}" for n in range(50_000)), 50_000),
    "two numbers": (",".join(f"n{n}m{n}" for n in range(20_000)), 20_000),
    "names of all kinds": (",".join(f"a{n}b" for n in range(50_000)), 50_000),
}


@pytest.mark.thorough
@pytest.mark.parametrize("name", LONG)
def test_a_long_node_set_takes_no_time(name: str) -> None:
    # ClusterShell alone takes minutes to hours for each of these: the suite would not end.
    spec, count = LONG[name]
    assert len(expand(spec)) == count
    assert len(expand("@all", {"all": spec})) == count


ABSURD = {
    "a range": "n[1-999999999]",
    "many ranges": ",".join(["n[1-50000]", "m[1-50001]"]),
    "more digits than numbers have": f"n[{'1' * 5000}]",
    "more padding": "n[" + ",".join("0" * n + "1" for n in range(3000)) + "]",
    "a name": "n1" * 100_000,
    "brackets": "[" * 100_000,
    "brackets in pairs": "n[1]" * 20_000,
    "commas": "," * 100_000,
    "a long expression": ",".join(["n1"] * 10_000) + "!n2",
    "groups": "@g30",
}


@pytest.mark.parametrize("name", ABSURD)
def test_an_absurd_node_set_is_refused_at_once_and_in_short(name: str) -> None:
    groups = {"g0": "n1"} | {f"g{n}": f"@g{n - 1},@g{n - 1}" for n in range(1, 31)}
    with pytest.raises(InventoryError) as refusal:
        expand(ABSURD[name], groups)
    assert len(str(refusal.value)) < 1000


ODD = {
    "an integer of 4,300 digits": f"[cluster]\nnodes = 'n1'\n[ssh]\nfanout = {'9' * 5000}\n",
    "a large integer": "[cluster]\nnodes = 'n1'\n[ssh]\nfanout = 99999999999999999999999\n",
    "a hexadecimal one": f"[cluster]\nnodes = 'n1'\n[ssh]\nfanout = 0x{'f' * 5000}\n",
    "none": "[cluster]\nnodes = 'n1'\n[ssh]\nfanout = 0\n",
    "below none": "[cluster]\nnodes = 'n1'\n[ssh]\nfanout = -5\n",
    "no number": "[cluster]\nnodes = 'n1'\n[ssh]\nconnect_timeout_s = nan\n",
    "for ever": "[cluster]\nnodes = 'n1'\n[ssh]\nconnect_timeout_s = inf\n",
    "beyond all numbers": "[cluster]\nnodes = 'n1'\n[ssh]\nconnect_timeout_s = 1e999\n",
    "a thousand digits": f"[cluster]\nnodes = 'n1'\n[ssh]\nconnect_timeout_s = {'9' * 400}\n",
    "lists in lists": f"[cluster]\nnodes = {'[' * 20_000}\n",
    "tables in tables": "[cluster]\nnodes = 'n1'\n[a." + ".".join(["b"] * 5000) + "]\n",
    "a date": "[cluster]\nnodes = 2024-01-01\n",
    "an impossible date": "[cluster]\nnodes = 2024-13-41\n",
    "a table for a name": "[cluster.nodes]\na = 1\n",
    "a NUL in a name": '[cluster]\nnodes = "n\\u0000"\n',
    "a NUL in an option": '[cluster]\nnodes = "n1"\n[ssh]\noptions = ["\\u0000"]\n',
    "a NUL in a path": '[cluster]\nnodes = "n1"\n[ssh]\nconfig = "a\\u0000b"\n',
    "a long path": f"[cluster]\nnodes = 'n1'\n[ssh]\nconfig = '{'a' * 5000}'\n",
    "a user that is none": "[cluster]\nnodes = 'n1'\n[ssh]\nconfig = '~nobody-at-all/x'\n",
}


@pytest.mark.parametrize("name", ODD)
def test_an_odd_value_is_named_with_its_file(name: str) -> None:
    with pytest.raises(ConfigError) as refusal:
        inventory.parse(ODD[name], "cluster.toml")
    said = str(refusal.value)
    assert said.startswith("cluster.toml: ")
    assert len(said) < 600
