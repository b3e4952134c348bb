"""Each trace of an odd program gives a prediction or a refusal that says why, within bounded time and memory."""

from __future__ import annotations

import math
import re
import time

import pytest

from tests.tiers import mostly_thorough
from tests.unit import odd_traces
from tests.unit.predict_fixture import calibrated_run
from wulf.base.errors import TraceError, WulfError
from wulf.base.trace.reader import read_verified
from wulf.base.trace.summary import summary
from wulf.node.replay import asking, predicting
from wulf.page.terminal import page_text
from wulf.tools.predict import page as prediction
from wulf.tools.trace import page as trace

#: A case may take so long on a busy machine [s].
LIMIT_S = 60
NOTHING = "nothing that the trace holds takes any time"
WHOLE = "the trace is not that of a whole program"
NO_WHOLE_RUN = r"did not reach MPI_Finalize \(it was killed, or aborted\)"
OTHERS = "a collective that rank . does not take part in, or calls another"
DEADLOCK = "it waits for rank ., which waits, too"
UNSENT = "a message that nobody sends"
DAMAGED = "damaged: "
#: Case → what its refusal says; all others are predicted.
REFUSED = {
    "no calls": NOTHING,
    "no calls and no time": NOTHING,
    "one rank without calls": NOTHING,
    "collectives of one rank alone": NOTHING,
    "neighbours without a topology": NOTHING,
    "collectives begun and never waited for": NOTHING,
    "phases of patterns": NOTHING,
    "a farm of nothing": NOTHING,
    "a rank ends early": UNSENT,
    "a rank ends within a collective": OTHERS,
    "a rank was killed": f"rank 1 {NO_WHOLE_RUN}",
    "all ranks aborted": f"rank 0 {NO_WHOLE_RUN}",
    "a rank left nothing": "rank 1 left no stream",
    "no rank left anything": "rank 0 left no stream",
    "a rank was full": "7 calls are missing, as its stream was full",
    "a receive of nothing": UNSENT,
    "receives first on both sides": DEADLOCK,
    "synchronous sends first on both sides": DEADLOCK,
    "different tags": UNSENT,
    "a peer that there is not": "rank 7 of a communicator of 2",
    "a negative peer": "rank -9 of a communicator of 2",
    "messages of exabytes": "a message of 9223372036854775808 B",
    "sendrecv without its other part": "what is received is missing",
    "received parts alone": "of kind 17, which there is not",
    "persistent requests started twice": "the start of a request that was not made for it, or runs",
    "a start of no request": "the start of a request that was not made for it, or runs",
    "a wait for request 0": "damaged: a request of number 0",
    "huge numbers of requests": "damaged: a request of number 4294967295",
    "cancelled requests": "rank 0 uses cancelled requests that are no receives, or whose end it did not see",
    "a communicator made twice": OTHERS,
    "a communicator never made": "a communicator that was never made: number 5",
    "a communicator of nobody": "a communicator with a rank that does not exist",
    "a communicator without its own rank": "a communicator that this rank is not a member of",
    "a communicator with one rank twice": "a communicator that this rank is not a member of",
    "a communicator that one rank has not": OTHERS,
    "members in another order": OTHERS,
    "a communicator that says less than it has": "a communicator whose members are cut off",
    "two groups that talk": "rank 0 uses communication between two groups",
    "different collectives": OTHERS,
    "different roots": OTHERS,
    "a root that there is not": "rank 9 of a communicator of 2",
    "no root": "rank -1 of a communicator of 2",
    "sizes for fewer ranks than there are": "1 sizes for 2 ranks",
    "sizes for more ranks than there are": "9 sizes for 2 ranks",
    "sizes of exabytes": "a message of 9223372036854775808 B",
    "collectives of petabytes": "a message of 1125899906842624 B",
    "collectives in another order": OTHERS,
    "neighbours that do not know each other": NOTHING,
    "memory of others": "rank 0 uses one-sided communication",
    "memory of others without the mark": "of kind 96, which there is not",
    "processes that were started": "rank 0 uses processes that are started or joined",
    "calls that are not known": "rank 0 uses calls that are not recorded",
    "computing for ages": DAMAGED,
    "time that goes backwards": DAMAGED,
    "a run of ages": DAMAGED,
    "times without a payload": "times without a duration",
    "a million looks": "damaged: a request of number 0",
    "more ranks than streams": "the stream is that of rank 0 of 4096",
    "cut in its middle": "cut off",
    "cut in a header": "cut off",
    "empty": "not a trace",
    "without ranks": "cut off in the list of its ranks",
    "a million ranks announced": "cut off in the list of its ranks",
    "four billion ranks announced": "cut off in the list of its ranks",
    "a note behind the end": "its note: cut off",
    "streams on top of each other": "the stream is that of rank 0 of 2",
    "a changed bit": "its checksum differs",
    "one rank twice": "the stream is that of rank 0 of 2",
    "ranks that are not these": "the stream is that of rank -5 of -7",
    "kinds that there are not": "of kind 255, which there is not",
    "a payload longer than the file": "what belongs to it is cut off",
}
#: Case → what its prediction notes.
NOTED = {
    "a small message to nobody": "1 message is never received, such as from rank 0 to rank 1",
    "a large message to nobody": "1 message is never received",
    "a source that was never said": "9 messages are never received",
    "a receive from any as it came": "9 messages are never received",
    "large sends first on both sides": "only buffering lets the program go on",
    "receives from anybody": "18 receives take a message from any source",
    "files": "MPI_File_write_at_all",
}


@pytest.fixture(scope="module")
def calibration(tmp_path_factory):
    return calibrated_run(tmp_path_factory.mktemp("runs") / "cal")


def test_every_expectation_is_of_a_case():
    assert (REFUSED.keys() | NOTED.keys()) <= odd_traces.cases().keys() and len(odd_traces.cases()) > 100


#: One of each kind is tried often.
OFTEN = (
    "no calls", "one rank that sends to itself", "a rank ends early", "all ranks aborted", "different collectives",
    "receives first on both sides", "a large message to nobody", "requests from anybody", "cancelled requests",
    "persistent requests never started", "a run of ages", "cut in its middle",
)  # fmt: skip


@pytest.mark.parametrize("name", mostly_thorough(odd_traces.cases(), *OFTEN))
def test_an_odd_program_is_predicted_or_refused(name, calibration, tmp_path):
    path = odd_traces.cases()[name](tmp_path / "a.wtrace")
    begun = time.monotonic()
    request = asking.PredictRequest(source=path, run=calibration, what_if="latency=x2,1gbe-tuned", samples=20)
    try:
        found = predicting.predict(request, lambda _: None)
    except WulfError as refusal:
        said = str(refusal)
        assert said.startswith(str(path)) and len(said) < len(str(path)) + 240 and said.isprintable()
        assert name in REFUSED and re.search(REFUSED[name], said), said
    else:
        assert name not in REFUSED
        values = [found.base.time.value, *(one.time.value for one in found.scenarios), found.bound.time.value]
        assert all(math.isfinite(value) and value >= 0 for value in values)
        shown = page_text(prediction.build(found))
        assert "\x1b" not in shown and not re.search(r"\bnan\b|\binf\b", shown)
        assert any(NOTED.get(name, "") in note for note in found.notes)
    assert time.monotonic() - begun < LIMIT_S


@pytest.mark.parametrize("name", mostly_thorough(odd_traces.cases(), *OFTEN))
def test_an_odd_trace_is_shown_or_refused(name, tmp_path):
    path = odd_traces.cases()[name](tmp_path / "a.wtrace")
    try:
        shown = page_text(trace.build(summary(read_verified(path))))
    except TraceError as refusal:
        assert str(path) in str(refusal) and name in REFUSED
    else:
        assert "\x1b" not in shown
