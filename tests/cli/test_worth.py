"""``wulf program worth`` on traces made record by record."""

from __future__ import annotations

import json

import pytest

from tests.cli.command import wulf
from tests.unit.predict_fixture import calibrated_run, ring

JOBS = 'nodes = 8\nhours_a_year = 8000\n[[job]]\ntrace = "ring.wtrace"\nshare = 0.8\nranks = 4\nnodes = 4\n'


@pytest.fixture
def place(tmp_path):
    (tmp_path / "runs").mkdir()
    calibrated_run(tmp_path / "runs" / "cal")
    ring(tmp_path / "ring.wtrace", run_ns=24_000_000)
    (tmp_path / "jobs.toml").write_text(JOBS)
    (tmp_path / "prices.toml").write_text(wulf(tmp_path, "program", "worth", "--template", "prices").stdout)
    return tmp_path


def asked(place, *words):
    return wulf(
        place, "program", "worth", "ring.wtrace", "--on", "cal", "--jobs", "jobs.toml", "--prices", "prices.toml",
        "--samples", "40", *words,
    )  # fmt: skip


def test_figures_follow_from_the_prediction_of_the_trace(place):
    done = asked(place, "--json", "--what-if", "25gbe-roce")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    (network,) = found["networks"]
    predicted = wulf(
        place, "program", "predict", "ring.wtrace", "--on", "cal", "--what-if", "25gbe-roce,1gbe-tuned",
        "--samples", "40", "--json",
    )  # fmt: skip
    there, tuned = json.loads(predicted.stdout)["scenarios"]
    assert network["jobs"][0]["change"]["value"] == pytest.approx(there["change"]["value"])
    saved = 8 * 8000 * 0.8 * (1 - there["change"]["value"])
    assert network["saved_node_hours"]["value"] == pytest.approx(saved)
    assert found["tuned_change"]["value"] == pytest.approx(1 - 0.8 * (1 - tuned["change"]["value"]))
    for figure in ("net", "value", "price", "break_even_port", "worth_nodes", "nodes_for_it", "beyond_tuned"):
        assert network[figure]["low"] <= network[figure]["value"] <= network[figure]["high"], figure


def test_prices_of_a_network_that_nobody_knows_are_no_prices(place):
    text = (place / "prices.toml").read_text()
    (place / "prices.toml").write_text(text.replace("[network.25gbe-roce]", "[network.25gbe-rocket]"))
    line = 1 + text[: text.index("[network.25gbe-roce]")].count("\n")
    done = asked(place, "--what-if", "25gbe-roce")
    assert done.returncode == 1
    assert (
        f"prices.toml:{line}: network.25gbe-rocket: there is no network '25gbe-rocket'; did you mean"
        in done.stderr
    )


def test_words_and_a_page(place):
    done = asked(place, "--html", "w.html")
    assert done.returncode == 0, done.stderr
    for said in (
        "Tune first: 1gbe-tuned",
        "25gbe-roce",
        "The same money buys",
        "they only",
        "20% of the node-hours",
    ):
        assert said in " ".join(done.stdout.split()), said
    page = (place / "w.html").read_text()
    assert "worth-tornado" in page and "worth-net" in page and "worth-ports" in page
    # The answer stands before all figures.
    said = " ".join(done.stdout.split())
    assert said.index("Buy 25gbe-roce: it pays; of those asked about") < said.index("Money by network")


def test_a_trace_that_was_cut_off_or_takes_from_anybody_is_refused(place):
    ring(place / "ring.wtrace", run_ns=1_000_000, steps=2, wild=True)
    said = refused(place)
    assert "8 receives from any source" in said and "--as-traced" in said
    assert asked(place, "--as-traced").returncode == 0
    # A rank was killed in its last step: the others wait for it.
    ring(place / "ring.wtrace", run_ns=1_000_000, steps=2, cut=True)
    assert "not that of a whole program" in refused(place)


def refused(place, *words):
    done = asked(place, *words)
    assert done.returncode in (1, 2)
    assert "Traceback" not in done.stderr
    return " ".join(done.stderr.split())


def test_what_a_trace_cannot_carry_is_refused_with_its_reason(place):
    (place / "jobs.toml").write_text(JOBS.replace("ranks = 4", "ranks = 64"))
    assert (
        "jobs.toml:6: job[0].ranks: ring.wtrace is of 4 ranks, the jobs are of 64: how a program"
        in refused(place)
    )
    (place / "jobs.toml").write_text(JOBS.replace("nodes = 4", "nodes = 2"))
    assert "is of 4 nodes, the jobs are of 2" in refused(place)
    (place / "jobs.toml").write_text(JOBS.replace("nodes = 4", "nodes = 1"))
    assert "no message of it goes through a network" in refused(place, "--ranks-per-node", "4")
    (place / "jobs.toml").write_text(JOBS.replace("ring.wtrace", "other.wtrace"))
    assert "jobs.toml:4: job[0].trace: other.wtrace is not among the traces" in refused(place)
    (place / "jobs.toml").write_text(JOBS)
    assert "only networks by name have prices" in refused(place, "--what-if", "bandwidth=x2")
    ring(place / "ring.wtrace")
    assert "does not say how long the program ran" in refused(place)
    ring(place / "ring.wtrace", run_ns=100_000_000)
    said = refused(place)
    assert "took 100 ms, the model of cal says 2" in said and "trace it again on quiet nodes" in said
    (place / "prices.toml").write_text("currency = 1")
    assert "prices.toml:1: currency: expected text in quotes, got a whole number" in refused(place)
    assert "cannot read no.toml" in refused(place, "--jobs", "no.toml")
