"""Which file sets the MTU and the sysctls at boot: by the rules of each system's own files."""

import shutil
import subprocess
from pathlib import Path

import pytest

from wulf.node.facts.parse import parse

HEAD = (
    "#links 0\n eno1 0000:03:00.0 igb - -\n lo - - - -\n-\n"
    "/sys/class/net/eno1/mtu:9000\n/sys/class/net/eno1/address:02:00:00:00:00:01\n"
)


def file(path, text):
    return "".join(f"{path}:{line}\n" for line in text.splitlines())


def node(*texts, live=()):
    sysctls = "".join(f"/proc/sys/{name.replace('.', '/')}:{value}\n" for name, value in live)
    return parse("node01", HEAD + sysctls + "".join(texts), "eno1", [])


NETWORK = "/etc/systemd/network/"
#: What a file says, and whether it sets the MTU of eno1 (02:00:00:00:00:01, driver igb) to 9000.
FILES = {
    "networkd, a pattern": ({NETWORK + "50-a.network": "[Match]\nName=en*\n[Link]\nMTUBytes=9000"}, True),
    "networkd, a pattern that is turned round": (
        {NETWORK + "50-a.network": "[Match]\nName=!eno1 lo\n[Link]\nMTUBytes=9000"},
        False,
    ),
    "networkd, all of it has to hold": (
        {NETWORK + "50-a.network": "[Match]\nName=eno1\nMACAddress=02:00:00:00:00:09\n[Link]\nMTUBytes=9000"},
        False,
    ),
    "networkd, an address that it gives is none that it matches": (
        {NETWORK + "50-a.network": "[Match]\nName=eno9\n[Link]\nMACAddress=02:00:00:00:00:01\nMTUBytes=9000"},
        False,
    ),
    "networkd, only the first that matches counts": (
        {
            NETWORK + "10-a.network": "[Match]\nName=eno1\n[Network]\nDHCP=yes",
            NETWORK + "50-b.network": "[Match]\nName=eno1\n[Link]\nMTUBytes=9000",
        },
        False,
    ),
    "networkd, a drop-in of the first": (
        {
            NETWORK + "10-a.network": "[Match]\nName=eno1\n[Link]\nMTUBytes=1500",
            NETWORK + "10-a.network.d/x.conf": "[Link]\nMTUBytes=9000",
        },
        True,
    ),
    "networkd says which one it has applied": (
        {
            NETWORK + "10-a.network": "[Match]\nName=eno1\n[Network]\nDHCP=yes",
            NETWORK + "50-b.network": "[Match]\nName=eno1\n[Link]\nMTUBytes=9000",
            "/run/systemd/netif/links/2": "NETWORK_FILE=/etc/systemd/network/50-b.network",
        },
        True,
    ),
    "udev, by driver": ({NETWORK + "50-a.link": "[Match]\nDriver=igb\n[Link]\nMTUBytes=9000"}, True),
    "udev, by what is not known": (
        {NETWORK + "50-a.link": "[Match]\nPath=pci-9*\n[Link]\nMTUBytes=9000"},
        False,
    ),
    "ifupdown, after it is up": (
        {
            "/etc/network/interfaces": "auto eno1\niface eno1 inet dhcp\n  post-up ip link set dev $IFACE mtu 9000"
        },
        True,
    ),
    "ifupdown, of another one": (
        {"/etc/network/interfaces": "iface eno1 inet dhcp\n  up ip link set eno1.7 mtu 9000"},
        False,
    ),
    "ifupdown, a command after the option": (
        {"/etc/network/interfaces": "iface eno1 inet dhcp\n  mtu 1500\n  up ifconfig eno1 mtu 9000"},
        True,
    ),
    "NetworkManager, by address": (
        {
            "/etc/NetworkManager/system-connections/a": "[connection]\nid=a\ntype=ethernet\n[ethernet]\n"
            "mac-address=02:00:00:00:00:01\nmtu=9000"
        },
        True,
    ),
    "NetworkManager, by match": (
        {"/etc/NetworkManager/system-connections/a": "[match]\ninterface-name=eno*;\n[ethernet]\nmtu=9000"},
        True,
    ),
    "NetworkManager, of another one": (
        {
            "/etc/NetworkManager/system-connections/a": "[connection]\ninterface-name=eno2\n[ethernet]\n"
            "mac-address=02:00:00:00:00:01\nmtu=9000"
        },
        False,
    ),
    "RHEL, by address": (
        {"/etc/sysconfig/network-scripts/ifcfg-Wired": "HWADDR=02:00:00:00:00:01\nMTU='9000' # jumbo"},
        True,
    ),
    "RHEL, of another one": ({"/etc/sysconfig/network-scripts/ifcfg-eno1": 'DEVICE="eno2"\nMTU=9000'}, False),
    "SLES": ({"/etc/sysconfig/network/ifcfg-eno1": "BOOTPROTO='static'\nMTU='9000'"}, True),
    "SLES, of another one": ({"/etc/sysconfig/network/ifcfg-eno10": "MTU='9000'"}, False),
}


@pytest.mark.parametrize("name", FILES)
def test_what_a_file_means_for_the_mtu(name):
    texts, sets = FILES[name]
    found = node(*(file(path, text) for path, text in texts.items()))
    assert found.facts.get("settings.mtu", found.absent.get("settings.mtu")) == (
        9000 if sets else "no configuration file sets it"
    )


@pytest.mark.parametrize("word", ["dynamic ", ""])
def test_an_mtu_beside_a_lease_may_come_with_it(word):
    address = (
        f"#addresses 0\n 2: eno1    inet 10.0.0.5/24 scope global {word}eno1\\\\       valid_lft 80000sec\n"
    )
    found = node(address).facts["settings.unkept"]
    assert (found == "none") is (word != "")


def contradicted(*texts, live):
    return node(*texts, live=live).facts["settings.contradicted"]


def test_a_link_to_sysctl_conf_is_read_in_its_place_and_not_last():
    linked = file("/etc/sysctl.d/99-sysctl.conf", "vm.swappiness=1") + file(
        "/etc/sysctl.conf", "vm.swappiness=1"
    )
    later = file("/etc/sysctl.d/zz-site.conf", "vm.swappiness=10")
    assert contradicted(linked, later, live=[("vm.swappiness", "10")]) == "none"
    assert "zz-site.conf says 10" in contradicted(linked, later, live=[("vm.swappiness", "1")])


def test_the_order_is_systemds_own_where_it_says_it():
    files = file("/usr/lib/sysctl.d/50-a.conf", "vm.swappiness=1") + file(
        "/etc/sysctl.conf", "vm.swappiness=2"
    )
    # An empty /etc/sysctl.d/50-a.conf hides the file.
    order = "#sysctl_order 0\n # /etc/sysctl.d/50-a.conf\n"
    found = node(files, order, live=[("vm.swappiness", "60")])
    assert found.facts["settings.contradicted"] == "none"
    assert found.facts["settings.unread"] == "/etc/sysctl.conf: vm.swappiness"


def test_names_with_wildcards_mean_those_that_are_not_named():
    text = "-net.core.*mem_max = 5\nnet.core.wmem_max=7\n-net.core.optmem_max\n"
    live = [("net.core.rmem_max", "5"), ("net.core.wmem_max", "7"), ("net.core.optmem_max", "9")]
    assert contradicted(file("/etc/sysctl.d/a.conf", text), live=live) == "none"
    wrong = [("net.core.rmem_max", "6"), ("net.core.wmem_max", "5")]
    said = contradicted(file("/etc/sysctl.d/a.conf", text), live=wrong)
    assert said.count("says 5") == 1 and said.count("says 7") == 1


SYSCTL = Path("/usr/lib/systemd/systemd-sysctl")


@pytest.mark.root
@pytest.mark.skipif(not SYSCTL.exists() or not shutil.which("unshare"), reason="there is no systemd-sysctl")
def test_this_systems_own_program_sets_what_is_read_from_its_files(tmp_path):
    text = (
        "-net.ipv4.*conf.lo.rp_filter = 2\nnet/ipv4/conf/lo/log_martians = 1\n; comment\n"
        "-net.ipv4.no_such = 1\nnet.ipv4.conf.*.accept_source_route = 1\n-net.ipv4.conf.all.accept_source_route\n"
        "net.ipv4.conf.lo.accept_source_route = 0\n"
    )
    path = tmp_path / "a.conf"
    path.write_text(text)
    names = [
        f"net.ipv4.conf.{nic}.{name}"
        for nic in ("lo", "all", "default")
        for name in ("rp_filter", "log_martians", "accept_source_route")
    ]
    script = f'ip link set lo up; {SYSCTL} {path} >&2; cd /proc/sys; for n; do echo "$n:$(cat $n)"; done'
    argv = ["unshare", "-n", "sh", "-c", script, "sh", *(name.replace(".", "/") for name in names)]
    out = subprocess.run(argv, capture_output=True, text=True, check=True, timeout=120).stdout
    live = [line.replace("/", ".").split(":") for line in out.splitlines()]
    assert ["net.ipv4.conf.default.accept_source_route", "1"] in live
    found = node(file("/etc/sysctl.d/a.conf", text), live=live)
    assert found.facts["settings.contradicted"] == "none"
