"""Whether a file of rules does what it says: by the messages that the library sends, or by breaking it on purpose."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from wulf.base.text import count
from wulf.tools.collectives.bench import Bench, LaunchError, Pattern
from wulf.tools.collectives.record import EffectState, RuleEffect
from wulf.tools.collectives.rules import classic, json3, mpich_tree
from wulf.tools.collectives.rules.halving import Candidate
from wulf.tools.collectives.rules.installed import Library
from wulf.tools.collectives.rules.rules import (
    BUILT_IN,
    Block,
    Rule,
    RuleFileError,
    Rules,
    chosen,
    counted_bytes,
)

#: Sizes of each collective and number of ranks at which the effect is looked at.
LOOKED_AT = 3
#: A name that no library has for an algorithm.
NONSENSE = "wulf_no_such_algorithm"
#: Number of an algorithm that is another collective's.
MISFIT = -1

#: Collective, ranks, size [B], what the file says for it.
Wanted = tuple[str, int, int, Candidate]


def text_of(library: Library, rules: Rules, chosen: Mapping[str, Candidate]) -> str:
    """Return the file that says what was decided, in the library's own format; read again before it is used.

    Parameters
    ----------
    chosen
        Collective → what is taken for all sizes, where the library reads no file.

    Raises
    ------
    RuleFileError
        What was read again is not what was written.
    """
    if library.format == "cvars":
        env = {
            name: value
            for one, way in chosen.items()
            for name, value in _variables(library, one, way).items()
        }
        return "".join(f"{name}={value}\n" for name, value in env.items())
    if library.format == "mpich-tree":
        assert library.tree is not None
        text = mpich_tree.write(library.tree, rules, library.keys)
        same = all(_same_in_tree(text, library, *one) for one in _corners(rules))
    elif library.format == "json-3":
        text = json3.write(rules)
        same = json3.read(text, {}) == rules
    else:
        text = classic.write(rules, 2 if library.format == "classic-2" else 1)
        same = classic.read(text) == rules
    if not same:
        raise RuleFileError("the rules do not read as they were written: please report this")
    return text


def environment(library: Library, path: str, chosen: Mapping[str, Candidate]) -> dict[str, str]:
    """Return the environment in which a job has what was decided."""
    if library.format == "cvars":
        return {n: v for one, way in chosen.items() for n, v in _variables(library, one, way).items()}
    return library.uses(path)


def smoke(bench: Bench, cells: Iterable[tuple[str, int, int]], env: Mapping[str, str]) -> dict[str, str]:
    """Make some calls of each collective, ranks and size under the file; return collective → what went wrong first."""
    wrong: dict[str, str] = {}
    for collective, ranks, size in cells:
        if collective in wrong:
            continue
        try:
            bench.calls(collective, ranks, size, env)
        except LaunchError as failure:
            wrong[collective] = f"{collective} of {count(ranks, 'rank')} at {size} B: {failure}"
    return wrong


def prove(
    bench: Bench, library: Library, rules: Rules, wanted: Sequence[Wanted], env: Mapping[str, str]
) -> list[RuleEffect]:
    """Say of every collective and number of ranks whether the file does what it says.

    Parameters
    ----------
    rules
        What the file says; none where variables say it.
    env
        Environment in which a job uses it.
    """
    effects = []
    for collective, ranks, size, way in _some(wanted):
        try:
            if library.family == "openmpi":
                state, evidence = _by_messages(bench, library, (collective, ranks, size, way), env)
            else:
                state, evidence = _by_breaking(bench, library, rules, (collective, ranks, size, way), env)
        except LaunchError as failure:
            state, evidence = "not in effect", f"with the file the job fails: {failure}"
        effects.append(
            RuleEffect(collective=collective, ranks=ranks, size_bytes=size, state=state, evidence=evidence)
        )
    return effects


def _by_messages(
    bench: Bench, library: Library, one: Wanted, env: Mapping[str, str]
) -> tuple[EffectState, str]:
    """Compare the messages of a call with the file, without it, and with the algorithm forced."""
    collective, ranks, size, way = one
    default = bench.pattern(collective, ranks, size, {})
    if not default:
        return "unknown", "this library does not count its messages (pml/monitoring)"
    filed = bench.pattern(collective, ranks, size, env)
    forced = bench.pattern(collective, ranks, size, library.forced(collective, way.number, way.segment_bytes))
    if filed == forced != default:
        return "in effect", f"with the file {_shown(filed)}, without {_shown(default)}"
    if filed != forced:
        return "not in effect", f"with the file {_shown(filed)}, but {way} sends {_shown(forced)}"
    return _canary(bench, library, one, default)


def _canary(bench: Bench, library: Library, one: Wanted, default: Pattern) -> tuple[EffectState, str]:
    """Use a file of the same format that says another algorithm, whose messages are others."""
    collective, ranks, size, way = one
    for other in library.algorithms[collective]:
        try:
            forced = bench.pattern(collective, ranks, size, library.forced(collective, other.number, 0))
            if forced == default:
                continue
            rule = Rule(from_bytes=0, algorithm=other.number, fanout=library.fanout.get(collective, 0))
            rules = {collective: (Block(ranks=ranks, rules=(rule,)),)}
            path = bench.put(text_of(library, rules, {}), f"canary-{collective}")
            filed = bench.pattern(collective, ranks, size, library.uses(path))
        except LaunchError:
            continue
        said = f"a file that says {other.name} gives {_shown(filed)}, without {_shown(default)}"
        if filed == forced:
            return "in effect", f"{way} sends the same messages as the default, but files are read: {said}"
        return "not in effect", said
    return "alike", f"all algorithms that work send {_shown(default)}"


def _by_breaking(
    bench: Bench, library: Library, rules: Rules, one: Wanted, env: Mapping[str, str]
) -> tuple[EffectState, str]:
    """Put what cannot be done in the very place of the rule: a library that ends the job for it takes that rule."""
    collective, ranks, size, way = one
    bench.calls(collective, ranks, size, env)
    if library.format == "cvars":
        broken = dict.fromkeys(_variables(library, collective, way), NONSENSE)
        what = f"a nonsense in the place of {way}"
    else:
        elsewhere = bench.put(misfit(library, rules, one, ranks + 1), f"elsewhere-{collective}")
        try:
            bench.calls(collective, ranks, size, {**env, **library.uses(elsewhere)})
        except LaunchError as failure:
            return (
                "unknown",
                f"another collective's algorithm for {count(ranks + 1, 'rank')} ends the job, too: {failure}",
            )
        broken = library.uses(bench.put(misfit(library, rules, one, ranks), f"broken-{collective}"))
        what = f"another collective's algorithm in the place of {way}"
    try:
        bench.calls(collective, ranks, size, {**env, **broken})
    except LaunchError as failure:
        return "in effect", f"{what} ends the job: {failure}"
    return "not in effect", f"{what} is not noticed"


def misfit(library: Library, rules: Rules, one: Wanted, ranks: int) -> str:
    """Return a tree that has, in the place of the rule for one size, an algorithm of another collective.

    It is read as any other, and ends a job that chooses it.

    Parameters
    ----------
    ranks
        Of which the place is; the ranks of `one` have their rule all the same where these are others.

    Raises
    ------
    RuleFileError
        The rules say nothing of that size.
    """
    assert library.tree is not None
    collective, of_ranks, size, way = one
    counted = counted_bytes(library.counted.get(collective, "message"), size, of_ranks)
    rule = chosen(rules, collective, of_ranks, counted)
    if rule is None or rule.algorithm == BUILT_IN:
        raise RuleFileError(f"{collective} of {count(of_ranks, 'rank')}: no rule says {way} at {size} B")
    by_ranks = {block.ranks: block.rules for block in rules[collective]}
    own, after = (by_ranks[max(n for n in by_ranks if n <= most)] for most in (of_ranks, ranks + 1))
    by_ranks.setdefault(ranks + 1, after)
    by_ranks[ranks] = tuple(msgspec.structs.replace(r, algorithm=MISFIT) if r == rule else r for r in own)
    blocks = tuple(Block(ranks=n, rules=by_ranks[n]) for n in sorted(by_ranks))
    keys = library.keys[collective] | {MISFIT: _foreign(library.tree, collective)}
    return mpich_tree.write(library.tree, {**rules, collective: blocks}, {**library.keys, collective: keys})


def _foreign(tree: mpich_tree.Tree, collective: str) -> str:
    """Return an algorithm of another collective: a barrier's where there is one, as it takes no data."""
    others = sorted(set(tree) - {f"collective={collective}"}, key=lambda name: name != "collective=barrier")
    return next(key for name in others for key in mpich_tree.leaves(tree[name]))


def _some(wanted: Sequence[Wanted]) -> list[Wanted]:
    """Return at most so many of each collective and ranks, each algorithm once."""
    kept: list[Wanted] = []
    for one in wanted:
        alike = [other for other in kept if other[:2] == one[:2]]
        if len(alike) < LOOKED_AT and all(other[3] != one[3] for other in alike):
            kept.append(one)
    return kept


def _shown(pattern: Pattern) -> str:
    """Say in words what rank 0 sends in a call."""
    peers = {target: count for (source, target), count in pattern.items() if source == 0}
    messages = sum(count for count, _ in peers.values())
    everybody = sum(count for count, _ in pattern.values())
    return f"rank 0 sends {count(messages, 'message')} to {count(len(peers), 'rank')}, all send {everybody}"


def _variables(library: Library, collective: str, way: Candidate) -> dict[str, str]:
    forced = library.forced(collective, way.number, way.segment_bytes)
    return {name: value for name, value in forced.items() if "FALLBACK" not in name}


def _corners(rules: Rules) -> Iterable[tuple[str, int, int, int]]:
    """Yield collective, ranks, first size as it is counted, and algorithm of every rule."""
    for collective, blocks in rules.items():
        for block in blocks:
            for rule in block.rules:
                yield collective, block.ranks, rule.from_bytes, rule.algorithm


def _same_in_tree(
    text: str, library: Library, collective: str, ranks: int, size: int, algorithm: int
) -> bool:
    assert library.tree is not None
    # Of a rule that counts all ranks the size of one message.
    own = size // ranks if library.counted.get(collective) == "all ranks" else size
    found = mpich_tree.decide(text, collective, ranks, own)
    if algorithm != BUILT_IN:
        return found == library.keys[collective][algorithm]
    return found == mpich_tree.walk(library.tree, collective, ranks, own)
