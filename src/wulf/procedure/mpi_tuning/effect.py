"""Whether a file of rules does what it says: by the messages that the library sends, or by breaking it on purpose."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from wulf.collectives import classic, json3, mpich_tree
from wulf.collectives.halving import Candidate
from wulf.collectives.installed import Library
from wulf.collectives.rules import BUILT_IN, Block, Rule, RuleFileError, Rules
from wulf.procedure.mpi_tuning.bench import Bench, LaunchError, Pattern
from wulf.records.collectives import EffectState, RuleEffect

#: Sizes of each collective and number of ranks at which the effect is looked at.
LOOKED_AT = 3
#: A name that no library has for an algorithm.
NONSENSE = "wulf_no_such_algorithm"

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


def smoke(bench: Bench, cells: Iterable[tuple[str, int, int]], env: Mapping[str, str]) -> list[str]:
    """Make some calls of each collective, ranks and size under the file; return what went wrong."""
    reasons = []
    for collective, ranks, size in cells:
        try:
            bench.calls(collective, ranks, size, env)
        except LaunchError as failure:
            reasons.append(f"{collective} of {ranks} ranks at {size} B: {failure}")
    return reasons


def prove(
    bench: Bench, library: Library, text: str, wanted: Sequence[Wanted], env: Mapping[str, str]
) -> list[RuleEffect]:
    """Say of every collective and number of ranks whether the file does what it says.

    Parameters
    ----------
    text
        The file.
    env
        Environment in which a job uses it.
    """
    effects = []
    for collective, ranks, size, way in _some(wanted):
        try:
            if library.family == "openmpi":
                state, evidence = _by_messages(bench, library, (collective, ranks, size, way), env)
            else:
                state, evidence = _by_breaking(bench, library, text, (collective, ranks, size, way), env)
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
    bench: Bench, library: Library, text: str, one: Wanted, env: Mapping[str, str]
) -> tuple[EffectState, str]:
    """Put a nonsense in the very place of the rule: a library that ends the job for it reads that place."""
    collective, ranks, size, way = one
    bench.calls(collective, ranks, size, env)
    if library.format == "cvars":
        broken = {name: value.replace(way.name, NONSENSE) for name, value in env.items()}
    else:
        key = library.keys[collective][way.number]
        path = bench.put(text.replace(f'"{key}"', f'"algorithm={NONSENSE}"'), f"broken-{collective}")
        broken = library.uses(path)
    try:
        bench.calls(collective, ranks, size, broken)
    except LaunchError as failure:
        return "in effect", f"a nonsense in the place of {way} ends the job: {failure}"
    return "not in effect", f"a nonsense in the place of {way} is not noticed"


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
    return f"rank 0 sends {messages} messages to {len(peers)} ranks, all send {everybody}"


def _variables(library: Library, collective: str, way: Candidate) -> dict[str, str]:
    forced = library.forced(collective, way.number, way.segment_bytes)
    return {name: value for name, value in forced.items() if "FALLBACK" not in name}


def _corners(rules: Rules) -> Iterable[tuple[str, int, int, int]]:
    """Yield collective, ranks, first size and algorithm of every rule."""
    for collective, blocks in rules.items():
        for block in blocks:
            for rule in block.rules:
                yield collective, block.ranks, rule.from_bytes, rule.algorithm


def _same_in_tree(
    text: str, library: Library, collective: str, ranks: int, size: int, algorithm: int
) -> bool:
    assert library.tree is not None
    found = mpich_tree.decide(text, collective, ranks, size)
    if algorithm != BUILT_IN:
        return found == library.keys[collective][algorithm]
    return found == mpich_tree.walk(library.tree, collective, ranks, size)
