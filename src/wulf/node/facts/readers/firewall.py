"""Packet filter: how many rules a packet of the cluster passes, and whether connections are tracked. Pure."""

from __future__ import annotations

import re

import msgspec

from wulf.base.output_values import Absent, Unknown
from wulf.base.records import FactValue
from wulf.node.facts.node import Facts, NodeCapture
from wulf.node.facts.tree import Tree

#: Hooks that a packet from another node, or to one, passes on this node.
_HOOKS = ("ingress", "prerouting", "input", "output", "postrouting")
_TRACKS = re.compile(
    r"\bct (state|status|mark|count|helper|direction|original|reply)|\b(masquerade|dnat|snat|redirect)\b"
    r'|\bxt (match|target) "(conntrack|state|MASQUERADE|SNAT|DNAT|REDIRECT)"'
)
_OLD_RULE = re.compile("^-A ", re.MULTILINE)
_OLD_TRACKS = re.compile(r"--ctstate|--state|-j (MASQUERADE|SNAT|DNAT|REDIRECT)")
_OTHER_INTERFACE = re.compile(r'\b[io]if(?:name)? (!= )?(?:"([^"]+)"|(\d+))')
_JUMP = re.compile(r"\b(?:jump|goto) (\S+)")
#: A rule for every packet of one interface, or for every packet.
_ALWAYS = re.compile(
    r'(?:(?:iif|iifname|oif|oifname) "[^"]+" )?(?:counter(?: packets \d+ bytes \d+)? )?'
    r'(?:(accept|drop|reject)(?: with [^"]*)?|(jump|goto) \S+)(?: comment ".*")?'
)
#: Deeper than the kernel lets chains call each other.
_DEPTH = 16


class Chain(msgspec.Struct, kw_only=True):
    """A chain of rules; a base chain has a hook."""

    table: str
    hook: str = ""
    policy: str = ""
    rules: list[str] = []


def add(facts: Facts, capture: NodeCapture) -> None:
    """Collect the facts of the packet filter."""
    facts.read("firewall.rules", lambda: sum(len(chain.rules) for chain in _chains(capture).values()))
    facts.read("firewall.rules_on_path", lambda: on_path(_chains(capture), capture.nic()))
    facts.read("firewall.policy", lambda: _policy(_chains(capture)))
    facts.read("firewall.flowtables", lambda: capture.tree.text("nft").count("flowtable "))
    facts.read("firewall.legacy_rules", lambda: legacy_rules(capture))


def ruleset(text: str) -> dict[str, Chain]:
    """Return the chains of ``nft list ruleset``, by table and name."""
    chains: dict[str, Chain] = {}
    table = ""
    current: Chain | None = None
    depth = 0
    for line in text.splitlines():
        words = line.strip()
        if words.startswith("table ") and words.endswith("{"):
            table, depth = words[6:-1].strip(), 1
        elif words.startswith("chain ") and words.endswith("{"):
            current, depth = Chain(table=table, rules=[]), 2
            chains[f"{table} {words[6:-1].strip()}"] = current
        elif words.endswith("{"):
            depth += 1  # a set, a map, a flowtable
        elif words == "}":
            depth -= 1
            current = None if depth < 2 else current
        elif current is not None and words and depth == 2:
            hook = re.match(r"type \S+ hook (\S+)", words)
            if hook:
                current.hook = hook[1]
                policy = re.search(r"policy (\w+)", words)
                current.policy = policy[1] if policy else "accept"
            elif not words.startswith(("#", 'comment "')):
                current.rules.append(words)
    return chains


def on_path(chains: dict[str, Chain], interface: str) -> int:
    """Return how many rules a packet of the cluster is compared with at most, on its way in and out.

    A rule that decides on all traffic of the interface ends the way; rules for another interface are counted
    (they are compared) but not followed.
    """
    return sum(_rules(chains, chain, interface, 0)[0] for chain in chains.values() if chain.hook in _HOOKS)


def _rules(chains: dict[str, Chain], chain: Chain, interface: str, depth: int) -> tuple[int, bool]:
    """Return how many rules are compared, and whether what comes of it is decided for every packet."""
    count = 0
    for rule in chain.rules:
        count += 1
        named = [match for match in _OTHER_INTERFACE.finditer(rule) if match[2]]
        if any((match[2].rstrip("*") != interface) is not bool(match[1]) for match in named):
            continue
        jump = _JUMP.search(rule)
        target = chains.get(f"{chain.table} {jump[1]}") if jump else None
        decided = False
        if target is not None and depth < _DEPTH and count < 1_000_000:
            more, decided = _rules(chains, target, interface, depth + 1)
            count += more
        always = _ALWAYS.fullmatch(rule)
        if always and (decided or always[1]):
            return count, True
        if always and always[2] == "goto":
            return count, False
    return count, False


def tracking(capture: NodeCapture) -> FactValue:
    """Return whether the kernel follows the connections of the cluster.

    ``tracked``, ``exempt`` (accepted before all other rules), ``notrack``, ``filtered`` (rules on its path of which
    none tracks), or ``off``.
    """
    interface = capture.nic()
    try:
        old = capture.tree.text("iptables_legacy")
    except Unknown:
        old = ""
    try:
        chains = _chains(capture)
    except Unknown as reason:
        if _OLD_TRACKS.search(old):
            return "tracked"
        if _never_loaded(capture.tree):
            return "off"
        raise Unknown(str(reason)) from None
    rules = [rule for chain in chains.values() for rule in chain.rules]
    if all(_exempt(chains, hook, interface) for hook in ("prerouting", "output")):
        return "notrack"
    if _OLD_TRACKS.search(old) or any(_TRACKS.search(rule) for rule in rules):
        return "exempt" if _passes_first(chains, interface) else "tracked"
    if _passes_first(chains, interface):
        return "exempt"
    return "filtered" if _OLD_RULE.search(old) or _filters(chains, interface) else "off"


def _filters(chains: dict[str, Chain], interface: str) -> bool:
    """Whether packets of the cluster are compared with rules that it can be exempt from."""
    return any(
        _rules(chains, chain, interface, 0)[0]
        for chain in chains.values()
        if chain.hook in _HOOKS[1:] and chain.table.split(" ")[0] in ("ip", "ip6", "inet")
    )


def _passes_first(chains: dict[str, Chain], interface: str) -> bool:
    """Whether the first rule of every chain on the way in or out accepts the interface's packets."""
    first = re.compile(rf'[io]ifname "{re.escape(interface)}" accept(?: comment ".*")?')
    filters = [chain for chain in chains.values() if chain.hook in ("input", "output")]
    return bool(filters) and all(chain.rules and first.fullmatch(chain.rules[0]) for chain in filters)


def _exempt(chains: dict[str, Chain], hook: str, interface: str) -> bool:
    """Whether a rule without any other condition takes the interface's packets out of tracking."""
    exempt = re.compile(
        rf'(?:[io]if(?:name)? "{re.escape(interface)}" )?(?:counter(?: packets \d+ bytes \d+)? )?'
        r'notrack(?: comment ".*")?'
    )
    return any(
        exempt.fullmatch(rule) for chain in chains.values() if chain.hook == hook for rule in chain.rules
    )


def legacy_rules(capture: NodeCapture) -> FactValue:
    """Return the number of rules in the tables of the old iptables.

    Raises
    ------
    Unknown
        When the node could not look.
    """
    tree = capture.tree
    try:
        tables = tree.text("ip_tables_names")
    except Absent:
        return 0
    if not tables:
        return 0
    return sum(1 for line in tree.lines("iptables_legacy") if line.startswith("-A "))


def _chains(capture: NodeCapture) -> dict[str, Chain]:
    return capture.once("chains", lambda: _read(capture.tree))


def _read(tree: Tree) -> dict[str, Chain]:
    try:
        return ruleset(tree.text("nft"))
    except Unknown as reason:
        if "not installed" in str(reason) and _never_loaded(tree):
            return {}
        raise


def _never_loaded(tree: Tree) -> bool:
    """Whether the kernel has no packet filter that could hold rules."""
    try:
        modules = tree.text("/proc/modules")
    except Unknown:
        return False
    loaded = {line.split(" ")[0] for line in modules.splitlines()}
    return bool(loaded) and not loaded & {"nf_tables", "ip_tables", "nf_conntrack"}


def _policy(chains: dict[str, Chain]) -> FactValue:
    policies = {chain.policy for chain in chains.values() if chain.hook == "input"}
    if not policies:
        return "none"
    return "drop" if "drop" in policies else "accept"
