"""Settings as a command that reads and one that sets, for those of which that is the whole of it.  Pure.

Other settings have functions of the shell (`access/`), because a driver or the kernel takes more than one command.
"""

from __future__ import annotations

import shlex

import msgspec

from wulf.node.change.steps import Step

#: Name that ``ethtool -k`` shows → name that ``ethtool -K`` takes; others have one name.
_FEATURES = {
    "rx-checksumming": "rx",
    "tx-checksumming": "tx",
    "scatter-gather": "sg",
    "tcp-segmentation-offload": "tso",
    "generic-segmentation-offload": "gso",
    "generic-receive-offload": "gro",
    "large-receive-offload": "lro",
    "rx-vlan-offload": "rxvlan",
    "tx-vlan-offload": "txvlan",
    "ntuple-filters": "ntuple",
    "receive-hashing": "rxhash",
}


class Command(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that a shell reads and sets."""

    #: The knob, and its part where it has several.
    name: str
    value: str
    #: Prints the value that there is.
    read: str
    #: Sets ``$VALUE``.
    set: str


def commands(step: Step) -> list[Command]:
    """Return what makes a step, in order; nothing where it takes more than commands."""
    if step.kind == "sysctl":
        read = f"sysctl -n {shlex.quote(step.target)} | tr '\\t' ' '"
        return [_command(step, "", step.value, read, f'sysctl -w {shlex.quote(step.target)}="$VALUE"')]
    if step.kind == "link":
        nic = shlex.quote(step.interface)
        read = f"cat {shlex.quote(f'/sys/class/net/{step.interface}/{step.target}')}"
        return [
            _command(step, "", step.value, read, f'ip link set dev {nic} {shlex.quote(step.target)} "$VALUE"')
        ]
    if step.kind == "file":
        return _file(step)
    return _ethtool(step) if step.kind == "ethtool" else []


def _file(step: Step) -> list[Command]:
    if set("*?[ ") & set(step.target):
        return []
    path = shlex.quote(step.target)
    # Of "always [madvise] never" the one in brackets.
    return [_command(step, "", step.value, rf"sed 's/.*\[\(.*\)\].*/\1/' {path}", f'echo "$VALUE" > {path}')]


def _ethtool(step: Step) -> list[Command]:
    group = step.target.split(".")[0]
    names = [name.removeprefix(f"{group}.") for name in step.target.split()]
    values = step.value.split()
    if len(values) != len(names) or any(not name.replace("-", "").isalnum() for name in names):
        return []
    nic = shlex.quote(step.interface)
    if group == "feature":
        return [
            _command(
                step,
                _FEATURES.get(name, name) if len(names) > 1 else "",
                value,
                rf"ethtool -k {nic} | sed -n 's/^{name}: \(on\|off\).*/\1/p'",
                f'ethtool -K {nic} {_FEATURES.get(name, name)} "$VALUE"',
            )
            for name, value in zip(names, values, strict=True)
        ]
    if group == "coalesce" and len(names) == 1:
        return _coalesce(step, names[0], nic)
    return []


def _coalesce(step: Step, name: str, nic: str) -> list[Command]:
    way, _, what = name.partition("-")
    if way not in ("rx", "tx"):
        return []  # of adaptive moderation the driver itself moves what it is made of

    # An adaptive driver takes no notice of a fixed delay.
    read_adaptive = f"ethtool -c {nic} | grep -q '^Adaptive.*{way.upper()}: on' && echo on || echo off"
    adaptive = _command(
        step, f"adaptive-{way}", "off", read_adaptive, f'ethtool -C {nic} adaptive-{way} "$VALUE"'
    )
    read = f"ethtool -c {nic} | sed -n 's/^{way}-{what}:[ \\t]*//p'"
    return [adaptive, _command(step, "", step.value, read, f'ethtool -C {nic} {way}-{what} "$VALUE"')]


def _command(step: Step, part: str, value: str, read: str, set_: str) -> Command:
    return Command(name=".".join(filter(None, (step.knob, part))), value=value, read=read, set=set_)
