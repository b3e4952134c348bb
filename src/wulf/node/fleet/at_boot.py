"""Whether what was written for the next boot is what the node's own system makes of all its files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import resources

from wulf.base.contracts import NodeResult, Transport
from wulf.base.interfaces import Interface, interface_of
from wulf.base.nodeset import fold, fold_reasons
from wulf.base.text import printable

ASK_S = 60.0


def notes(transport: Transport, texts: Mapping[str, Mapping[str, str]], interface: Interface) -> list[str]:
    """Ask the nodes' systems, and return for people what they will do otherwise, and what they could not say.

    Parameters
    ----------
    texts
        Node → path → what was written there.
    """
    script = resources.files("wulf.node.change").joinpath("at_boot.sh").read_bytes()
    reasons: dict[str, str] = {}
    groups: dict[tuple[str, ...], list[str]] = {}
    for node, written in texts.items():
        if words := questions(written, interface_of(interface, node)):
            groups.setdefault(tuple(words), []).append(node)
    for asked, nodes in groups.items():
        answers = transport.run(["sh", "-s", "--", *asked], nodes, timeout_s=ASK_S, stdin=script)
        reasons |= {node: said for node in nodes if (said := _words(answers[node], asked))}
    return [f"{fold(nodes)}: {reason}" for nodes, reason in fold_reasons(reasons)]


def questions(texts: Mapping[str, str], interface: str | None) -> list[str]:
    """Return the arguments of the script; nothing where no such file was written."""
    link = network = "-"
    sysctls: list[str] = []
    for path, text in texts.items():
        if path.startswith("/etc/sysctl.d/"):
            pairs = (line.partition("=") for line in text.splitlines() if not line.startswith("#"))
            sysctls += [f"{name.strip()}={value.strip()}" for name, mark, value in pairs if mark]
        elif path.endswith(".link"):
            link = path
        elif ".network.d/" in path:
            network = path.split("/")[-2].removesuffix(".d")
    return [interface or "-", link, network, *sysctls] if (link, network) != ("-", "-") or sysctls else []


def _words(answer: NodeResult, words: Sequence[str]) -> str:
    """Return what a node's system will do otherwise; that it could not be asked is not that all is well."""
    if answer.status != "ok":
        return f"the settings at boot could not be determined: {answer.reason}"
    lines = [line.split(" ", 3) for line in answer.stdout.decode("utf-8", "replace").splitlines()]
    said = [
        f"{one[1]} will be {one[3] if len(one) > 3 and one[3] not in ('', '-') else 'otherwise'} at boot, by {one[2]}"
        for one in lines
        if one[0] == "otherwise" and len(one) > 2
    ]
    asked = {one[1] for one in lines if one[0] == "asked" and len(one) > 1}
    wanted = {"sysctl": len(words) > 3, "link": words[1] != "-", "network": words[2] != "-"}
    unasked = [what for what, is_wanted in wanted.items() if is_wanted and what not in asked]
    if unasked:
        said.append(f"its system does not say what it makes of its files at boot ({', '.join(unasked)})")
    return printable("; ".join(said), 400)
