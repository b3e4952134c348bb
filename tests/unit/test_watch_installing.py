"""A watch in a crontab: what is written is taken away again, and never what is another watch's."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from wulf.base.errors import UsageError
from wulf.tools.watch import installing
from wulf.tools.watch.timer.times import Times

CRONTAB = """\
#!/bin/sh
case $1 in
-l) cat "$TABLE" 2>/dev/null || { echo "no crontab for somebody" >&2; exit 1; } ;;
-r) rm "$TABLE" ;;
-) cat >"$TABLE" ;;
esac
"""


@pytest.fixture
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file of a crontab that is nobody's."""
    program = tmp_path / "bin" / "crontab"
    program.parent.mkdir()
    program.write_text(CRONTAB)
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}/usr/bin{os.pathsep}/bin")
    monkeypatch.setenv("TABLE", str(tmp_path / "table"))
    return tmp_path / "table"


def planned(minute: int) -> installing.Plan:
    return installing.plan("lab", "cron", Times((minute,)), ["wulf", "watch", "run"], 60.0)


def test_two_watches_of_one_name_do_not_share_their_lines(table: Path, tmp_path: Path) -> None:
    table.write_text("MAILTO=root\n")
    installing.install(planned(10), tmp_path / "first" / "lab")
    before = table.read_text()
    with pytest.raises(UsageError, match="lines of a watch lab already"):
        installing.install(planned(20), tmp_path / "second" / "lab")
    assert table.read_text() == before and not (tmp_path / "second").exists()
    installing.remove(tmp_path / "first" / "lab")
    assert table.read_text() == "MAILTO=root\n"
    installing.install(planned(20), tmp_path / "second" / "lab")


def test_it_has_the_configuration_of_who_installs_it(table: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WULF_SITE_DIR", "/srv/wulf")
    monkeypatch.setenv("XDG_CONFIG_HOME", "/srv/config")
    _, line, _ = planned(10).lines
    assert "WULF_SITE_DIR=/srv/wulf" in line and "XDG_CONFIG_HOME=/srv/config" in line
    assert not table.exists()
