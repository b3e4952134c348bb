"""Half a round trip is the mean of both directions: streams say which of them is slow."""

from tests.unit.test_alone import matrix as small
from tests.unit.test_alone import suspect
from wulf.base.records.diagnosed import Diagnosis
from wulf.page.sections import diagnosis as shown
from wulf.tools.diagnose import one_way

GBIT = 1e9


def matrix(*suspects):
    import msgspec

    return msgspec.structs.replace(small(*suspects), size_bytes=1 << 20)


def rates(pairs, slow):
    return {pair: 0.3 * GBIT if slow(*pair) else 0.94 * GBIT for pair in pairs}


def title(of):
    return shown.page(Diagnosis(run_id="x", nodes=["n0", "n1"], matrices=[of], margin=0.1)).title


def test_a_suspect_is_measured_in_both_directions_with_nodes_that_are_well():
    found = one_way.pairs([matrix(suspect("n7"))])
    assert found == [("n7", "n0"), ("n0", "n7"), ("n7", "n1"), ("n1", "n7")]
    assert one_way.pairs([matrix(suspect("n6", "n7", kind="link"))]) == [("n6", "n7"), ("n7", "n6")]


def test_nothing_is_measured_of_small_messages_or_of_many():
    assert one_way.pairs([small(suspect("n7"))]) == []
    assert one_way.pairs([matrix()]) == []
    several = [suspect(f"n{number}", slower=number) for number in range(2, 8)]
    senders = {first for first, _ in one_way.pairs([matrix(*several)])} - {"n0", "n1"}
    assert senders == {"n4", "n5", "n6", "n7"}


def test_the_direction_is_named():
    of = matrix(suspect("n7"))
    pairs = one_way.pairs([of])
    sending = one_way.with_rates(of, rates(pairs, lambda first, _: first == "n7"))
    assert title(sending) == "n7 is slow: 300 Mbit/s sending, 940 Mbit/s receiving"
    receiving = one_way.with_rates(of, rates(pairs, lambda _, second: second == "n7"))
    assert title(receiving) == "n7 is slow: 300 Mbit/s receiving, 940 Mbit/s sending"
    both = one_way.with_rates(of, rates(pairs, lambda *_: True))
    assert title(both) == "n7 is slow: 300 Mbit/s in either direction"


def test_of_a_link_both_ends_are_named():
    of = matrix(suspect("n6", "n7", kind="link"))
    found = one_way.with_rates(of, rates(one_way.pairs([of]), lambda first, _: first == "n7"))
    assert title(found) == (
        "the link between n[6-7] is slow: 300 Mbit/s from n7 to n6, 940 Mbit/s from n6 to n7"
    )


def test_without_streams_it_is_said_as_before():
    assert title(matrix(suspect("n7"))) == "n7 is slow: 1.5 × the time of others at 1 MiB"
