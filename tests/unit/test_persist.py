"""Where each setting is kept, by what the node's own system uses; and that keeping leaves no trace when undone."""

from __future__ import annotations

import functools
import json
import re
import subprocess
from pathlib import Path

import msgspec
import pytest

from wulf.base import catalogue
from wulf.base.native import build
from wulf.node.change import configuration_files, steps
from wulf.node.change.persist import marker, persist, stored
from wulf.node.change.shell_functions import access_functions
from wulf.node.facts.parse import parse

NODES = Path(__file__).parents[1] / "golden/nodes"
CHANGE = "20260101T000000-abcdef"
HEAD = marker(CHANGE)
DEFAULT_LINK = """-
/usr/lib/systemd/network/99-default.link:[Match]
/usr/lib/systemd/network/99-default.link:OriginalName=*
/usr/lib/systemd/network/99-default.link:[Link]
/usr/lib/systemd/network/99-default.link:NamePolicy=keep kernel database onboard slot path
/usr/lib/systemd/network/99-default.link:MACAddressPolicy=persistent
"""


def with_udev(
    interface, file="/usr/lib/systemd/network/99-default.link", systemd=252, mac="aa:00:00:00:00:01"
):
    """What a node with udev prints beside a capture that was made without it."""
    return (
        f"#units 0\n systemd-udevd.service loaded active running Rule-based Manager\n"
        f"#systemd_version 0\n systemd {systemd} (of the test)\n"
        f"#ethtool-P.{interface} 0\n Permanent address: {mac}\n"
        f"#udev.{interface} 0\n ID_NET_DRIVER=igb\n ID_NET_LINK_FILE={file}\n{DEFAULT_LINK}"
    )


@functools.cache
def facts(name, extra="", interface=None):
    """The facts of a captured node, and its interface; `{nic}` in `extra` is that."""
    interface = interface or json.loads((NODES / f"{name}.json").read_text())["interface"]
    text = (NODES / f"{name}.tree").read_text() + "\n" + extra.replace("{nic}", interface)
    return parse("node01", text, interface, list(catalogue.knobs().values())), interface


def keep(record, interface, *words):
    found = persist(steps.parse(words), interface, record, CHANGE)
    assert not [step for step in found.steps if step.value.startswith(("file:", "link:"))], "a text is sent"
    assert {step.target for step in found.steps if step.value.startswith("made:")} == found.texts.keys()
    explained(found)
    return found


def explained(found):
    """What the guard would write, but for files for which it looks at the node: those are as this side says."""
    asked = [step for step in found.steps if step.value.startswith("made:") and not of_node(step)]
    done = subprocess.run(
        [build.build_program("wulf-guard", None).path, "explain"],
        input="".join(step.line() + "\n" for step in asked),
        capture_output=True,
        text=True,
        check=False,
    )
    if not asked:
        return
    assert done.returncode == 0, done.stdout
    texts = {}
    for line in done.stdout.splitlines():
        path, _, rest = line.partition("\t")
        texts.setdefault(path, []).append(rest)
    for step in asked:
        text = found.texts[step.target]
        last = f"ln -sfn {text} {step.target}" if is_link(step.target) else f"write {step.target}"
        assert texts[step.target] == [*([] if is_link(step.target) else text.splitlines()), last]


def of_node(step):
    return "/systemd/network/" in step.target or step.target == configuration_files.MODPROBE


def is_link(path):
    return ".wants/" in path


def files(found):
    """Path → text of the files that are written."""
    return {path: text for path, text in found.texts.items() if not is_link(path)}


def test_sysctls_share_one_file():
    record, nic = facts("veth")
    found = keep(record, nic, "net.ipv4.tcp_timestamps=0", "net.core.busy_poll=50")
    assert files(found) == {
        "/etc/sysctl.d/90-wulf.conf": f"{HEAD}\nnet.core.busy_poll = 50\nnet.ipv4.tcp_timestamps = 0\n"
    }
    assert found.places["sysctl.net.core.busy_poll"] == "/etc/sysctl.d/90-wulf.conf"
    assert found.notes == []


@pytest.mark.parametrize(
    ("other", "name"),
    [
        ("/etc/sysctl.d/50-site.conf", "90-wulf.conf"),
        ("/usr/lib/sysctl.d/95-vendor.conf", "99-wulf.conf"),
        ("/etc/sysctl.d/99-sysctl.conf", "99-wulf.conf"),
        ("/etc/sysctl.d/99-zzz.conf", "zz-wulf.conf"),
    ],
)
def test_a_file_that_comes_later_would_override_and_is_named(other, name):
    record, nic = facts("veth", f"-\n{other}:net.core.busy_poll = 0\n")
    found = keep(record, nic, "net.core.busy_poll=50", "net.ipv4.tcp_timestamps=0")
    assert list(files(found)) == [f"/etc/sysctl.d/{name}"]
    assert set(found.places.values()) == {f"/etc/sysctl.d/{name}"}
    assert found.notes == [f"{other} also sets net.core.busy_poll; /etc/sysctl.d/{name} is read after it"]


def test_sysctl_conf_is_read_last_by_hand_only():
    record, nic = facts("veth", "-\n/etc/sysctl.conf:net.core.busy_poll = 0\n")
    found = keep(record, nic, "net.core.busy_poll=50")
    assert list(files(found)) == ["/etc/sysctl.d/90-wulf.conf"]
    assert "reads /etc/sysctl.conf last" in found.notes[0]


OFFLOADS = ("nic.gro=off", "nic.tso_gso=off on", "nic.rx_usecs=0", "nic.rings=512 max")


@pytest.mark.parametrize("name", ["e1000e", "ixgbe", "mlx5_core"])
def test_udev_sets_the_card_and_the_name_stays(name):
    record, nic = facts(name, with_udev("{nic}"))
    found = keep(record, nic, *OFFLOADS)
    path = f"/etc/systemd/network/10-wulf-{nic}.link"
    text = files(found)[path]
    assert set(files(found)) == {path}
    assert text.startswith(f"{HEAD}\n[Match]\nPermanentMACAddress=aa:00:00:00:00:01\nType=ether\n\n")
    carried, own = text.split("[Link]\n")[1:]
    assert carried.splitlines() == [
        "NamePolicy=keep kernel database onboard slot path",
        "MACAddressPolicy=persistent",
        "",
    ]
    assert own.split() == [
        "RxBufferSize=512",
        "TxBufferSize=max",
        "GenericReceiveOffload=no",
        "UseAdaptiveRxCoalesce=no",
        "RxCoalesceSec=0us",
        "TCPSegmentationOffload=no",
        "GenericSegmentationOffload=yes",
    ]
    assert set(found.places.values()) == {path}


def test_keeping_again_does_not_carry_over_what_was_added():
    record, nic = facts("e1000e", with_udev("{nic}"))
    path = f"/etc/systemd/network/10-wulf-{nic}.link"
    first = files(keep(record, nic, "nic.gro=off", "nic.rx_usecs=0"))[path]
    lines = "".join(f"{path}:{line}\n" for line in first.splitlines() if line and line[0] != "#")
    record, _ = facts("e1000e", with_udev("{nic}", file=path) + "-\n" + lines)
    again = files(keep(record, nic, "nic.rx_usecs=0"))[path]
    assert "GenericReceiveOffload" not in again
    assert again.count("NamePolicy=keep kernel database onboard slot path") == 1
    assert "RxCoalesceSec=0us" in again


@pytest.mark.parametrize(
    ("extra", "why"),
    [
        ("", "no udev"),
        (with_udev("{nic}").replace("ID_NET_LINK_FILE", "ID_NET_OTHER"), "what udev applied is not known"),
        (with_udev("{nic}", mac="00:00:00:00:00:00"), "no permanent address"),
        (with_udev("{nic}", systemd=239), "systemd does not know the keys"),
        (with_udev("{nic}").replace("99-default.link", "00-aaa.link"), "another file comes before"),
    ],
)
def test_where_a_link_file_could_lose_the_name_or_the_setting_a_unit_sets_it(extra, why):
    record, nic = facts("mlx5_core", extra)
    found = keep(record, nic, "nic.gro=off", "nic.rx_usecs=0")
    assert not [path for path in files(found) if path.endswith(".link")], why
    script = files(found)[configuration_files.SCRIPT]
    assert f"keep nic nic.gro ethtool {nic} feature.generic-receive-offload off\n" in script
    assert files(found)["/etc/systemd/system/wulf-settings.service"].startswith(HEAD)


def test_a_site_file_that_sorts_early_is_preceded():
    record, nic = facts("e1000e", with_udev("{nic}").replace("99-default.link", "05-site.link"))
    assert f"/etc/systemd/network/00-wulf-{nic}.link" in files(keep(record, nic, "nic.gro=off"))


def test_coalescing_needs_a_newer_systemd_than_offloads():
    record, nic = facts("e1000e", with_udev("{nic}", systemd=247))
    found = keep(record, nic, "nic.gro=off", "nic.rx_usecs=0")
    assert found.places["nic.gro"].endswith(".link")
    assert found.places["nic.rx_usecs"].startswith(configuration_files.SCRIPT)


def test_ifupdown_with_an_mtu_of_its_own_has_the_last_word_taken():
    record, nic = facts("r8169", with_udev("{nic}"))
    assert record.facts["keep.manager"] == "ifupdown"
    found = keep(record, nic, "nic.mtu=9000", "nic.gro=off")
    assert found.places["nic.gro"].endswith(".link")
    assert found.places["nic.mtu"] == "/etc/wulf/settings.sh (/etc/network/if-up.d/wulf-settings)"
    hook = files(found)["/etc/network/if-up.d/wulf-settings"]
    assert hook.splitlines()[2:] == [
        f'[ "$IFACE" = {nic} ] || exit 0',
        "exec /bin/sh /etc/wulf/settings.sh nic",
    ]
    assert "sets the MTU of enp3s0 to 7000" in found.notes[0]


def test_ifupdown_without_one_leaves_it_to_udev():
    record, nic = facts("e1000e", with_udev("{nic}"))
    found = keep(record, nic, "nic.mtu=9000")
    assert "MTUBytes=9000" in files(found)[f"/etc/systemd/network/10-wulf-{nic}.link"]


def test_networkd_takes_the_mtu_from_its_own_file():
    extra = (
        with_udev("{nic}")
        + "-\n/run/systemd/netif/links/2:NETWORK_FILE=/etc/systemd/network/10-cluster.network\n"
    )
    record, nic = facts("ixgbe", extra)
    assert record.facts["keep.manager"] == "networkd"
    found = keep(record, nic, "nic.mtu=1500")
    assert files(found) == {
        "/etc/systemd/network/10-cluster.network.d/90-wulf.conf": f"{HEAD}\n[Link]\nMTUBytes=1500\n"
    }


@pytest.mark.parametrize("name", ["igb", "i40e"])
def test_networkmanager_runs_a_dispatcher_script(name):
    record, nic = facts(name, with_udev("{nic}"))
    assert record.facts["keep.manager"] == "NetworkManager"
    found = keep(record, nic, "nic.mtu=1500", "nic.gro=off", "net.core.busy_poll=50")
    path = "/etc/NetworkManager/dispatcher.d/90-wulf-settings"
    assert f"[ \"$1 $2\" = '{nic} up' ] || exit 0" in files(found)[path]
    assert not [file for file in files(found) if file.endswith(".link")]


def test_an_interface_that_networkmanager_leaves_alone():
    record, nic = facts("igb", with_udev("{nic}") + "#nmcli.{nic} 0\n 10 (unmanaged)\n")
    assert record.facts["keep.manager"] == "none"
    assert keep(record, nic, "nic.gro=off").places["nic.gro"].endswith(".link")


def test_the_script_has_what_it_needs_in_the_right_order():
    record, nic = facts("mlx5_core")
    found = keep(
        record,
        nic,
        "irq.affinity=0 1",
        "nic.rps=3",
        "nic.channels=combined 4",
        "vm.thp=never",
        "cstates_pmqos=1",
    )
    script = files(found)[configuration_files.SCRIPT]
    lines = re.findall(r"^keep (\w+) (\S+)", script, re.M)
    assert lines == [
        ("nic", "nic.channels"),
        ("nic", "nic.rps"),
        ("node", "vm.thp"),
        ("latency", "cpu.cstates_pmqos"),
        ("nic", "irq.affinity"),
    ]
    assert subprocess.run(["sh", "-n"], input=script, text=True, check=False).returncode == 0
    units = [path for path in found.texts if is_link(path)]
    assert units == [
        "/etc/systemd/system/multi-user.target.wants/wulf-settings.service",
        "/etc/systemd/system/multi-user.target.wants/wulf-latency.service",
    ]


def test_the_packet_filter_and_services_at_boot():
    extra = (
        "#units 0\n nftables.service loaded active exited nftables\n irqbalance.service loaded active running x\n"
        "#unit_files 0\n nftables.service enabled enabled\n irqbalance.service enabled enabled\n"
    )
    record, nic = facts("veth", extra)
    found = keep(record, nic, "net.conntrack=notrack", "svc.irqbalance=off")
    again = "/bin/sh /etc/wulf/settings.sh firewall"
    assert files(found)["/etc/systemd/system/nftables.service.d/90-wulf.conf"] == (
        f"{HEAD}\n[Service]\nExecStartPost={again}\nExecReload={again}\n"
    )
    units = [(step.target, step.value) for step in found.steps if step.kind == "unit"]
    assert units == [("irqbalance.service", "disabled")]


def test_what_cannot_be_kept_says_what_to_do():
    extra = "#units 0\n firewalld.service loaded active running x\n#unit_files 0\n firewalld.service enabled enabled\n"
    record, nic = facts("igb", extra)
    found = keep(record, nic, "net.conntrack=notrack")
    assert "firewall-cmd --permanent --zone=trusted" in found.unpersistable["net.conntrack"]
    isolated = steps.KnobSetting(knob=catalogue.knob("cpu.isolcpus"), value="2-3")
    found = persist([isolated], nic, record, CHANGE)
    assert "grubby --update-kernel=ALL" in found.unpersistable["cpu.isolcpus"]
    assert found.steps == []


@pytest.mark.parametrize(("name", "hook"), [("veth", False), ("r8169", True)])
def test_without_a_running_systemd_it_is_said_what_holds_and_what_does_not(name, hook):
    record, nic = facts(name)
    record = msgspec.structs.replace(
        record,
        facts={key: value for key, value in record.facts.items() if key != "system.state"},
        unknown=record.unknown | {"system.state": "systemd does not say: offline"},
    )
    words = (
        "net.core.busy_poll=50",
        "vm.thp=never",
        "net.conntrack=notrack",
        "svc.irqbalance=off",
        "nic.eee=off",
    )
    found = keep(record, nic, *words)
    left = {"vm.thp", "net.conntrack", "svc.irqbalance"} | (set() if hook else {"nic.eee"})
    assert {
        knob: "systemd does not run there" in why for knob, why in found.unpersistable.items()
    } == dict.fromkeys(left, True)
    assert "/etc/sysctl.d/90-wulf.conf holds if what starts the node reads it" in found.notes[-1]
    assert not [path for path in found.texts if "systemd" in path]
    assert ("/etc/network/if-up.d/wulf-settings" in found.texts) is hook


def test_files_of_an_earlier_change_go():
    record, nic = facts("veth", "#wulf_files 0\n /etc/sysctl.d/90-wulf.conf\n /etc/wulf/settings.sh\n")
    found = keep(record, nic, "vm.thp=never")
    assert ("/etc/sysctl.d/90-wulf.conf", "absent") in {(step.target, step.value) for step in found.steps}
    assert files(found).keys() >= {configuration_files.SCRIPT}


def test_equal_nodes_get_equal_bytes():
    words = ("nic.mtu=9000", "net.core.busy_poll=50", "net.conntrack=notrack")
    one, nic = facts("veth")
    other, _ = facts("veth", "#hostname 0\n node02\n")
    assert keep(one, nic, *words).steps == keep(other, nic, *reversed(words)).steps


def test_every_file_says_whose_it_is():
    record, nic = facts("r8169", with_udev("{nic}"))
    found = keep(
        record, nic, *OFFLOADS, "nic.mtu=9000", "net.core.busy_poll=50", "vm.thp=never", "nic.eee=off"
    )
    assert len(files(found)) >= 5
    for path, text in files(found).items():
        assert HEAD in text.splitlines()[:2], path


def test_undone_without_a_trace(tmp_path):
    path = tmp_path / "a/b/90-wulf.conf"
    there = tmp_path / "there.conf"
    there.write_text("old\n")
    there.chmod(0o640)
    script = (
        access_functions(("stored",))
        + """
set -e
for file; do stored_save - "$file" >"$file_state"."${file##*/}"; done
""".replace('"$file_state"', str(tmp_path / "saved"))
    )
    script += f"stored_put - {path} '{stored(str(path), 'new').value}'; cat {path}\n"
    script += f"stored_put - {there} '{stored(str(there), 'new').value}'\n"
    script += f'for file; do stored_restore - "$file" <{tmp_path}/saved.${{file##*/}}; done\n'
    before = there.stat()
    done = subprocess.run(
        ["sh", "-s", str(path), str(there)], input=script, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "new", "")
    assert not (tmp_path / "a").exists()
    after = there.stat()
    assert there.read_text() == "old\n"
    assert (after.st_mode, int(after.st_mtime), after.st_uid) == (
        before.st_mode,
        int(before.st_mtime),
        before.st_uid,
    )
