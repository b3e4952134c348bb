"""What nodes do by themselves, with noise that was planted: figures, what would make them quieter, how it is shown."""

from __future__ import annotations

import itertools
import math
import re
from collections import Counter

import msgspec
import numpy as np
import pytest

from tests.unit.make_records import manifest, operation, plan, result, sample
from tests.unit.pages import operations, said, table
from wulf.base import catalogue
from wulf.base.errors import ConfigError
from wulf.base.records import (
    Adjusted,
    Cell,
    Clock,
    Estimate,
    LaunchResult,
    NodeContext,
    NodeRecord,
    ProbeInfo,
    Sample,
)
from wulf.base.records.measured import Parameter
from wulf.node.measuring.analysis import analyze_results
from wulf.page.blocks import Cards, Page
from wulf.page.page import html
from wulf.page.terminal import page_text
from wulf.stats import estimate
from wulf.stats.estimate import host_signatures
from wulf.stats.estimate.signatures import Rule
from wulf.tools.measure import page as run_report
from wulf.tools.measure.page import view
from wulf.tools.measure.page.hosts import sections

WORK_NS, JITTER_NS = 100_000, 60
#: As many as five visits of 10 ms have.
VISITS, ITERATIONS = 5, 100
FACTS = {"cpu.idle_exit_us": 2, "cpu.hypervisor": "none", "nic.name": "eth0"}


def hosts_page(found):
    """Return a page with what is shown of nodes by themselves alone."""
    return Page("", "", "", "", (), tuple(sections(found, brief=False)))


def alone(name, asked):
    takes = Parameter(name="CPU", usual=0, low=0, high=8191)
    made = operation(name, "none", 0)
    return msgspec.structs.replace(
        made, ranks=1, pattern="none", moves_bytes=False, divisor=1.0, asked=asked, parameter=takes
    )


def tick(hz, length_ns):
    """Return what comes with a period, from anywhere within it."""

    def delays(rng, clock_ns):
        step = 1e9 / hz
        phase = rng.uniform(0, step)
        crossed = np.floor((clock_ns + WORK_NS + phase) / step) > np.floor((clock_ns + phase) / step)
        return crossed * length_ns * rng.uniform(0.9, 1.1, clock_ns.size)

    return delays


def at_random(per_s, length_ns):
    """Return what comes at any time."""
    return lambda rng, clock_ns: (rng.random(clock_ns.size) < per_s * WORK_NS * 1e-9) * float(length_ns)


class World:
    """A cluster whose launches are made up value by value."""

    def __init__(self, nodes=("node01",), cpus=4, launches=12, seed=1):
        self.rng = np.random.default_rng(seed)
        self.nodes, self.cpus, self.launches = nodes, cpus, launches
        #: (node, CPU) → what disturbs it.
        self.noise = {}
        #: Sleep [µs] → delay [s].
        self.wakes = {10: 5e-6, 10_000: 6e-6}
        self.context = {"steal_ratio": 0.0, "foreign_cpu_ratio": 0.0}
        self.facts = dict(FACTS)

    def everywhere(self, noise, cpus=None):
        for node in self.nodes:
            for cpu in range(self.cpus) if cpus is None else cpus:
                self.noise.setdefault((node, cpu), []).append(noise)

    def analysis(self):
        results, operations = [], []
        for cpu in range(self.cpus):
            operations.append(alone(f"noise_cpu{cpu}", f"noise_on:{cpu}"))
            results += [self._work(node, cpu) for node in self.nodes for _ in range(self.launches)]
        for gap_us, late_s in self.wakes.items():
            operations.append(alone(f"wake_{gap_us}", f"wake:{gap_us}"))
            results += [
                self._launch(f"wake_{gap_us}", node, late_s * 1e9 * self.rng.normal(1, 0.05, 50))
                for node in self.nodes
                for _ in range(self.launches)
            ]
        results = [_numbered(one, index) for index, one in enumerate(results)]
        wanted = plan(
            ops=[one.name for one in operations],
            places={one.name: [(node,) for node in self.nodes] for one in operations},
            sizes_bytes=[0],
        )
        records = [NodeRecord(node=node, reachable=True, facts=self.facts) for node in self.nodes]
        analysis = analyze_results("made-up", wanted, operations, records, results)
        return analysis, manifest(plan=wanted, operations=operations), records, results

    def _work(self, node, cpu):
        values = []
        for _ in range(VISITS):
            clock = WORK_NS * np.arange(ITERATIONS, dtype=float)
            own = WORK_NS + np.abs(self.rng.normal(0, JITTER_NS, ITERATIONS))
            values.append(own + sum(noise(self.rng, clock) for noise in self.noise.get((node, cpu), [])))
        return self._launch(f"noise_cpu{cpu}", node, np.concatenate(values))

    def _launch(self, op, node, values):
        values = sorted(Counter(int(value) for value in values).items())
        made = Sample(
            launch="0",
            cell=Cell(op=op, size_bytes=0, place=(node,)),
            timing="iteration",
            divisor=1.0,
            iterations=sum(count for _, count in values),
            batch_iterations=ITERATIONS,
            histogram=values,
            min_ns=values[0][0],
            max_ns=values[-1][0],
            batch_medians_ns=[values[0][0]],
            warmup_medians_ns=[values[0][0]],
            warmup_settled=True,
        )
        launch = msgspec.structs.replace(
            result(0, op=op, pair=(node,)).launch,
            context=[NodeContext(node=node, **self.context)],
            probe=ProbeInfo(
                version="0",
                protocol=1,
                mpi=None,
                hosts=[node],
                cpus=[[0]],
                clock=Clock(source="CLOCK_MONOTONIC_RAW", resolution_ns=1, cost_ns=25),
            ),
        )
        return LaunchResult(launch=launch, samples=[made])


def _numbered(made, index):
    name = f"{index:05d}"
    return LaunchResult(
        launch=msgspec.structs.replace(made.launch, id=name, index=index),
        samples=[msgspec.structs.replace(one, launch=name) for one in made.samples],
    )


def found(world):
    return world.analysis()[0].hosts


def advised(world):
    return {host.node: [advice.id for advice in host.advice] for host in found(world)}


def test_what_others_take_is_what_was_planted():
    world = World(launches=24)
    world.everywhere(at_random(100, 50_000), cpus=[2])
    (host,) = found(world)
    assert [cpu.cpu for cpu in host.cpus] == [0, 1, 2, 3]
    noisy, quiet = host.cpus[2], host.cpus[0]
    # 100 times 50 µs a second of undisturbed work.
    truth = 100 * 50e-6 / (1 + 100 * 50e-6)
    assert noisy.detoured.low < truth < noisy.detoured.high
    assert noisy.taken.value == pytest.approx(0.005, rel=0.3)
    assert noisy.longest_s == pytest.approx(50e-6, rel=0.05)
    assert noisy.watched_s == pytest.approx(24 * 0.05, rel=0.02)
    rates = {rate.from_s: rate.per_s for rate in noisy.detours}
    assert list(rates) == [1e-6, 1e-5, 1e-4, 1e-3, 1e-2]
    assert rates[1e-5].low < 100 < rates[1e-5].high
    assert rates[1e-4].value == 0 and 0 < rates[1e-4].high < 5, "never in 1.2 s is not never"
    assert quiet.detoured.value == 0 and quiet.longest_s == 0 and quiet.histogram == []
    assert 0 < quiet.taken.value < 0.002, "the jitter is above the shortest, and no detour"
    assert sum(per_s for _, per_s in noisy.histogram) == pytest.approx(rates[1e-5].value)
    assert all(low <= 50e-6 < low * 10**0.21 for low, _ in noisy.histogram)


def test_each_length_has_its_class():
    world = World(cpus=1, launches=24)
    for per_s, length_ns in ((200, 3_000), (80, 20_000), (40, 300_000), (20, 4_000_000), (10, 25_000_000)):
        world.everywhere(at_random(per_s, length_ns))
    (host,) = found(world)
    for rate, per_s in zip(host.cpus[0].detours, (200, 80, 40, 20, 10), strict=True):
        # The time that the work takes by itself is not all the time.
        assert 0 < rate.per_s.value < per_s
    assert host.cpus[0].detours[0].to_s == host.cpus[0].detours[1].from_s
    assert host.cpus[0].detours[-1].to_s is None
    assert host.cpus[0].longest_s >= 25e-3


def test_clock_wakes_and_load_are_those_of_the_node():
    world = World(nodes=("node01", "node02"))
    world.context = {"steal_ratio": 0.004, "foreign_cpu_ratio": None}
    first, second = found(world)
    assert (first.node, second.node) == ("node01", "node02")
    assert first.clock.cost.value == pytest.approx(25e-9) and first.clock.resolution_s == pytest.approx(1e-9)
    assert [wake.gap_s for wake in first.wakes] == pytest.approx([1e-5, 1e-2])
    assert first.wakes[0].late.low <= 5e-6 * 1.02 and first.wakes[0].late.high >= 5e-6 * 0.98
    assert first.steal.value == 0.004 and first.foreign is None
    assert first.quiet_width is None


def test_few_launches_have_no_interval():
    (host,) = found(World(launches=4))
    cpu = host.cpus[0]
    assert cpu.detoured.low is None and all(rate.per_s.low is None for rate in cpu.detours)
    assert cpu.tick_hz is None


def test_a_run_of_the_network_alone_says_nothing_of_hosts():
    results = [result(index) for index in range(8)]
    assert analyze_results("r", plan(), [operation()], [], results).hosts == []
    strange = msgspec.structs.replace(operation("IMB PingPong", "none"), statistic="mean")
    assert estimate.host_noise(results, [], [strange], 0.95) == []


def test_how_much_narrower_intervals_would_be():
    world = World()
    analysis, head, _, results = world.analysis()
    cell = analysis.cells[0]
    time = cell.time

    def adjusted(op, gain, place=("node01", "node02")):
        return msgspec.structs.replace(
            cell,
            cell=Cell(op=op, size_bytes=64, place=place),
            adjusted=Adjusted(time=time, reference_s=3e-6, slope=time, gain=gain),
        )

    measured = [*head.operations, operation("tcp_rr", "net")]
    network = [adjusted("tcp_rr", 4), adjusted("tcp_rr", 16), adjusted("tcp_rr", 100)]
    elsewhere = [adjusted("tcp_rr", 1.1, ("node03", "node04")), adjusted("noise_cpu0", 1.1, ("node01",))]
    cells = [*analysis.cells, *network, *elsewhere]
    (host,) = estimate.host_noise(results, cells, measured, 0.95)
    assert host.quiet_width.value == pytest.approx(0.25) and host.quiet_width.n == 3
    assert table(hosts_page([host]), "Clock").rows[0][-1].text == "0.250 × (3 cells)"


@pytest.mark.parametrize("hz", [100, 250, 1000])
@pytest.mark.parametrize("launches", [8, 24])
def test_a_tick_is_known_by_its_rate_and_its_evenness(hz, launches):
    world = World(launches=launches)
    world.everywhere(tick(hz, 6000))
    (host,) = found(world)
    assert [cpu.tick_hz for cpu in host.cpus] == [hz] * 4


def test_what_comes_as_often_at_random_is_no_tick():
    told = 0
    for seed in range(10):
        world = World(seed=seed)
        world.everywhere(at_random(250, 6000))
        told += sum(cpu.tick_hz is not None for cpu in found(world)[0].cpus)
    assert told <= 2, "one of a hundred is wrong"


def test_what_comes_evenly_at_another_rate_is_no_tick():
    world = World(launches=24)
    world.everywhere(tick(180, 6000))
    assert all(cpu.tick_hz is None for cpu in found(world)[0].cpus)


def plant_power_states(world):
    world.facts["cpu.idle_exit_us"] = 133
    world.wakes = {10: 5e-6, 100: 20e-6, 10_000: 140e-6}


def plant_halted_guest(world):
    world.facts["cpu.hypervisor"] = "KVM"
    del world.facts["cpu.idle_exit_us"]
    world.wakes = {10: 20e-6, 10_000: 70e-6}


def plant_timer_tick(world):
    world.everywhere(tick(1000, 4000))


def plant_interrupts(world):
    world.everywhere(at_random(20, 5000))
    world.everywhere(at_random(400, 20_000), cpus=[3])
    world.facts |= {"nic.interrupts_on": "3", "nic.interrupt_cpus": 1}


def plant_stolen_time(world):
    world.context["steal_ratio"] = 0.04


def plant_foreign_load(world):
    world.context["foreign_cpu_ratio"] = 0.3
    # It is the cause of all that looks like others.
    plant_interrupts(world)
    plant_power_states(world)


PLANTED = {
    "cpu.power_states": plant_power_states,
    "cpu.halted_guest": plant_halted_guest,
    "cpu.timer_tick": plant_timer_tick,
    "nic.interrupts_on_noisy_cpu": plant_interrupts,
    "node.stolen_time": plant_stolen_time,
    "node.foreign_load": plant_foreign_load,
}


@pytest.mark.parametrize("cause", PLANTED)
def test_what_is_planted_is_named_and_nothing_else(cause):
    world = World()
    PLANTED[cause](world)
    assert advised(world) == {"node01": [cause]}


def test_every_signature_has_a_case():
    assert set(PLANTED) == set(catalogue.host_signatures())


def light(world):
    """Return what costs little: nobody would do anything about it."""
    world.facts["cpu.idle_exit_us"] = 133
    world.wakes = {10: 5e-6, 10_000: 7e-6}
    world.everywhere(tick(250, 1500))
    world.context |= {"steal_ratio": 0.002, "foreign_cpu_ratio": 0.01}


def noisy_elsewhere(world):
    """Return a CPU that is noisy, and interrupts on another one."""
    plant_interrupts(world)
    world.facts["nic.interrupts_on"] = "0"


def interrupts_everywhere(world):
    plant_interrupts(world)
    world.facts |= {"nic.interrupts_on": "0 1 2 3", "nic.interrupt_cpus": 4}


def all_alike(world):
    """Return CPUs of which none is noisier than the others, with the interrupts on one."""
    plant_interrupts(world)
    world.noise.clear()
    world.everywhere(at_random(400, 20_000))


def wakes_that_do_not_grow(world):
    plant_power_states(world)
    world.wakes = {10: 140e-6, 10_000: 140e-6}


def no_deep_state(world):
    """Return late wake-ups on a machine of its own that forbids deep states already."""
    plant_power_states(world)
    world.facts["cpu.idle_exit_us"] = 2


def nothing_known(world):
    world.facts.clear()
    world.context = {"steal_ratio": None, "foreign_cpu_ratio": None}
    world.wakes = {10: 5e-6, 10_000: 140e-6}
    world.everywhere(at_random(400, 20_000), cpus=[3])


@pytest.mark.parametrize(
    "plant",
    [
        lambda world: None,
        light,
        noisy_elsewhere,
        interrupts_everywhere,
        all_alike,
        wakes_that_do_not_grow,
        no_deep_state,
        nothing_known,
    ],
)
def test_where_nothing_qualifies_none_is_named(plant):
    world = World()
    plant(world)
    assert advised(world) == {"node01": []}
    assert "Nothing was found that is known to make node01 quieter." in said(hosts_page(found(world)))


def test_wakes_that_few_launches_saw_prove_nothing():
    world = World(launches=4)
    plant_power_states(world)
    assert advised(world) == {"node01": []}


def test_advice_has_its_numbers_and_a_command():
    world = World(nodes=("node01", "node02"))
    plant_power_states(world)
    plant_interrupts(world)
    states, interrupts = found(world)[1].advice
    assert re.search(
        r"back [45]\.\d+ ± 0\.\d+ µs late .* 1[34]\d[.\d]* ± .* from one of 10\.0 ms", states.evidence
    )
    assert "133 µs" in states.evidence
    assert states.next == ("wulf tune --nodes 'node[01-02]' --objective latency --knobs cpu.cstates_pmqos")
    assert re.search(r"detours take 0\.\d+ % \(.*\) of the time of CPU 3, \d", interrupts.evidence)
    assert interrupts.next == "wulf settings set irq.affinity=CPUS --nodes 'node[01-02]'"


def test_commands_name_knobs_that_are_there():
    for signature in catalogue.host_signatures().values():
        for known in re.findall(r"\b(?:cpu|irq|nic|sysctl)\.\w+", signature.next):
            assert known in catalogue.knobs()


def test_what_a_node_says_of_itself_stays_in_its_place():
    world = World()
    plant_interrupts(world)
    world.facts["nic.name"] = "eth0\x1b[31m; rm -rf /"
    analysis, *_ = world.analysis()
    (card,) = [
        card
        for block in hosts_page(analysis.hosts).blocks
        if isinstance(block, Cards)
        for card in block.cards
    ]
    assert "\x1b" not in card.evidence and "rm" not in card.next


def test_all_evidence_can_be_written():
    for rule in host_signatures.rules():
        assert "{" not in rule.evidence({})
        assert "unknown" in rule.evidence({})


def test_a_signature_that_speaks_of_no_feature_is_refused():
    known = next(iter(catalogue.host_signatures().values()))
    wrong = msgspec.structs.replace(known, when="wake_grow > 1")
    with pytest.raises(
        ConfigError, match=r"data/host_signatures/.*toml: wake_grow is not a feature of a node"
    ):
        Rule(wrong, "host_signatures", host_signatures.is_feature, "a node")


def test_features_are_those_that_are_described():
    world = World()
    world.everywhere(tick(1000, 4000))
    plant_power_states(world)
    plant_interrupts(world)
    shown = host_signatures.of_host(found(world)[0], {})
    assert shown.keys() == host_signatures.FEATURES.keys()


def test_text_and_page_show_the_hosts():
    world = World(nodes=("node01", "node02"))
    plant_interrupts(world)
    analysis, head, records, results = world.analysis()
    launches = [one.launch for one in results]
    shown = view.build(head, records, launches, analysis)
    assert [op.name for op in operations(shown)] == ["wake_10", "wake_10000"], (
        "CPUs have a table of their own"
    )
    assert {(row[0].text, row[1].raw) for row in table(shown, "Detours of fixed work by CPU").rows[:2]} == {
        ("node01", 3),
        ("node02", 3),
    }
    (figure,) = [one for one in shown.figures if one.title.startswith("Detours")]
    columns = figure.variants[0].datasets["main"]
    assert len({len(column) for column in columns.values()}) == 1
    assert len(set(columns["cpu"])) == 6 and "Of 8 CPUs the 6" in figure.variants[0].caption
    text = page_text(run_report.build(head, records, launches, analysis))
    for words in (
        "Hosts",
        "of CPU 3, ",
        "late after 10.0 ms of sleep",
        "wulf settings set irq.affinity=CPUS",
    ):
        assert words in text
    page = html(run_report.build(head, records, launches, analysis))
    assert 'id="detours"' in page and "Detours of fixed work by CPU, noisiest first" in page
    assert view.figures_of(shown)[-1] == ("hosts", figure)


def test_lines_of_the_chart_end_where_nothing_was_seen():
    world = World(cpus=1, launches=24)
    world.everywhere(at_random(200, 3_000))
    world.everywhere(at_random(200, 300_000))
    columns = hosts_page(found(world)).figures[0].variants[0].datasets["main"]
    assert sorted(set(columns["stretch"])) == [0, 1]
    for stretch in (0, 1):
        lows = [low for low, of in zip(columns["from_s"], columns["stretch"], strict=True) if of == stretch]
        steps = [math.log10(after / before) for before, after in itertools.pairwise(lows)]
        assert steps == pytest.approx([0.2] * len(steps), abs=1e-3)


def test_without_detours_there_is_no_chart():
    assert hosts_page(found(World())).figures == ()


def test_an_estimate_of_the_network_keeps_its_place():
    """A sample of a pair beside fixed work is none of a CPU."""
    world = World()
    _, head, _, results = world.analysis()
    beside = LaunchResult(launch=result(900, op="tcp_rr").launch, samples=[sample(900, op="tcp_rr")])
    (host,) = estimate.host_noise([*results, beside], [], [*head.operations, operation("tcp_rr")], 0.95)
    assert len(host.cpus) == world.cpus
    assert isinstance(host.cpus[0].taken, Estimate)
