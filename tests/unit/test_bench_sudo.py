"""The cases of `bench.sudo`: which there are, and that a run that was ended goes on with the same."""

from __future__ import annotations

import base64
import re

from bench import sudo


def plan_of(number: int) -> bytes:
    """Return the plan of a case."""
    return base64.b64decode(sudo.case(number).split("\n")[1])


def test_a_case_is_the_same_whenever_it_is_made() -> None:
    assert [sudo.case(number) for number in range(50)] == [sudo.case(number) for number in range(50)]
    assert len({sudo.case(number) for number in range(500)}) > 400


def test_some_are_good_and_some_name_files_or_have_bytes_that_no_plan_has() -> None:
    plans = [plan_of(number) for number in range(1000)]
    good = re.compile(rb"([!-~]+\t[a-z_]+\t[!-~]+\t[ -~]+\t[ -~]+\n)+")
    assert 200 < sum(bool(good.fullmatch(plan)) for plan in plans) < 900
    for word in (b"made:", b"/etc/sudoers.d/evil", b"\0", b"$(id)", b"@A/saved.1"):
        assert any(word in plan for plan in plans), word


def test_what_may_be_made_is_what_keeps_settings() -> None:
    assert sudo.may_be_made("/etc/sysctl.d/90-wulf.conf")
    assert not [
        path for path in ("/etc/passwd", "/etc/sudoers.d/evil", "/etc/wulf/grant") if sudo.may_be_made(path)
    ]
