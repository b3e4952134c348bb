"""Documents hold together: decisions say what replaced them, results are one table with a date for each value."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
DECISIONS = ROOT / "docs/adr"


def test_every_decision_has_its_own_number_and_a_line_in_the_list() -> None:
    files = sorted(path.name for path in DECISIONS.glob("0*.md"))
    numbers = [name[:4] for name in files]
    assert len(set(numbers)) == len(numbers)
    listed = re.findall(r"^\| \[\d{4}\]\(([^)]+)\)", (DECISIONS / "README.md").read_text(), re.MULTILINE)
    assert sorted(listed) == files


def test_a_decision_that_was_replaced_says_by_what_and_the_list_does_too() -> None:
    lines = (DECISIONS / "README.md").read_text(encoding="utf-8").splitlines()
    marked = 0
    for path in DECISIONS.glob("0*.md"):
        text = path.read_text(encoding="utf-8")
        (line,) = [line for line in lines if f"]({path.name}) |" in line]
        found = re.search(r"^\*\*(Replaced|Amended)\*\* by \[decision \d+\]\((\S+\.md)\)", text, re.MULTILINE)
        assert bool(found) is ("(**replaced**" in line or "(**amended**" in line), path.name
        if found:
            marked += 1
            assert (DECISIONS / found[2]).is_file() and f"({found[2]})" in line
    assert marked >= 8


def test_results_are_one_table_with_claim_goal_value_date_and_machine() -> None:
    text = (ROOT / "bench/RESULTS.md").read_text(encoding="utf-8")
    rows = [line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("| ")]
    head, *claims = rows
    assert head[:6] == ["claim", "`NAME`", "goal", "value", "date", "machine"]
    assert len(claims) > 40 and text.count("\n|---") == 1
    for row in claims:
        assert len(row) == 7 and re.fullmatch(r"\d{4}-\d\d-\d\d", row[4]), row
        assert row[6].startswith(("pass", "short")), row
    names = {row[1].strip("`") for row in claims}
    modules = {path.stem.replace("_", "-") for path in (ROOT / "bench").iterdir()}
    assert names - modules == {"fresh"}  # a target of make
