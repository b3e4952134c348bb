"""When a watch starts, as systemd and cron have it."""

import shutil
import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wulf.base.errors import ConfigError, UsageError
from wulf.tools.watch.timer import crontab, units
from wulf.tools.watch.timer.times import Times, calendar, cron, parse_window, times

needs_systemd = pytest.mark.skipif(
    shutil.which("systemd-analyze") is None, reason="systemd-analyze is not installed"
)


@pytest.mark.parametrize(
    ("every", "window", "wanted", "fields"),
    [
        ("1d", None, ["*-*-* 02:30:00"], ["30 2 * * *"]),
        ("1d", "04:15-06:00", ["*-*-* 04:15:00"], ["15 4 * * *"]),
        ("7d", "01:00-02:00", ["Mon *-*-* 01:00:00"], ["0 1 * * 1"]),
        ("6h", None, ["*-*-* 00,06,12,18:00:00"], ["0 0,6,12,18 * * *"]),
        ("1h", "22:00-01:00", ["*-*-* 00,22,23:00:00"], ["0 0,22,23 * * *"]),
        ("30m", "02:00-03:00", ["*-*-* 02:00,30:00"], ["0,30 2 * * *"]),
        # Hours that begin differently take a line of their own.
        ("30m", "02:10-03:20", ["*-*-* 02:10,40:00", "*-*-* 03:10:00"], ["10,40 2 * * *", "10 3 * * *"]),
    ],
)
def test_times_are_the_same_for_both(every, window, wanted, fields):
    found = times(every, parse_window(window) if window else None)
    assert calendar(found) == wanted
    assert cron(found) == fields


@pytest.mark.parametrize("every", ["5m", "7h", "2d", "90s", "25h", "100m"])
def test_days_that_would_not_be_alike_are_refused(every):
    with pytest.raises(UsageError, match="--every"):
        times(every, None)


@pytest.mark.parametrize("text", ["2-5", "02:00", "25:00-03:00", "02:60-03:00", "02:00-03:00x"])
def test_what_is_no_window_is_refused(text):
    with pytest.raises(UsageError, match="02:00-05:00"):
        parse_window(text)


def test_a_window_says_how_long_it_is_open():
    night = parse_window("22:00-02:00")
    assert night.minutes == 240
    assert night.left_s(23 * 3600) == 3 * 3600
    assert night.left_s(1 * 3600) == 3600
    assert night.left_s(2 * 3600) is None
    assert night.left_s(12 * 3600) is None


@needs_systemd
@pytest.mark.parametrize("every", ["7d", "1d", "12h", "1h", "10m"])
def test_systemd_takes_the_times(every):
    for expression in calendar(times(every, parse_window("21:40-04:50"))):
        done = subprocess.run(
            ["systemd-analyze", "calendar", "--iterations=3", expression],
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        assert "Next elapse" in done.stdout


@needs_systemd
def test_systemd_takes_the_units(tmp_path):
    words = ["/bin/true", "--on-alarm", 'mail -s "100 % $HOME" root; echo \\n', "plain", ""]
    text = units.service("lab", words, {"PATH": "/bin:/a b", "ODD": 'x"y%$z'}, 1800, 3)
    service, timer = tmp_path / "wulf-watch-lab.service", tmp_path / "wulf-watch-lab.timer"
    service.write_text(text)
    timer.write_text(units.timer("lab", calendar(Times((150,)))))
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", str(service), str(timer)],
        capture_output=True,
        text=True,
        check=False,
    )
    # It may say things of other units of this machine.
    assert "wulf-watch-lab" not in done.stdout + done.stderr
    assert f"ExecStart=/bin/true --on-alarm {units.quoted(words[2])} plain" in text


def test_words_for_systemd_keep_what_it_would_expand():
    assert units.quoted("plain-word_1.toml") == "plain-word_1.toml"
    assert units.quoted("a b") == '"a b"'
    assert units.quoted("100%") == "100%%" or units.quoted("100%") == '"100%%"'
    assert units.quoted("$HOME").count("$$") == 1
    assert units.quoted("$HOME", in_command=False).count("$") == 1
    assert units.quoted("") == '""'


OURS = crontab.lines(
    "lab", ["30 2 * * *"], ["/usr/bin/python3", "-m", "wulf.start", "a b", "100%"], {"PATH": "/bin"}
)


def test_a_line_of_a_crontab_is_one_command_for_a_shell():
    begin, line, end = OURS
    assert begin.startswith("#") and end.startswith("#")
    assert line.startswith("30 2 * * * env PATH=/bin /usr/bin/python3")
    # Cron ends the line at a bare percent sign.
    assert line.endswith("'a b' 100\\%")
    command = (
        line.removeprefix("30 2 * * * ").replace("\\%", "%").replace("/usr/bin/python3", "printf '%s\\n'")
    )
    done = subprocess.run(["/bin/sh", "-c", command], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-2:] == ["a b", "100%"]


@given(
    st.text(st.characters(codec="ascii", exclude_categories=("Cc",)), max_size=60).map(
        lambda text: f"{text}\n"
    )
)
def test_what_is_added_to_a_crontab_can_be_taken_away_byte_for_byte(before):
    after = crontab.added(before, OURS)
    assert after.startswith(before)
    assert crontab.found(after, "lab") == OURS
    assert crontab.without(after, OURS) == before


def test_a_line_that_cron_would_not_take_is_refused():
    with pytest.raises(UsageError, match=r"1\d{3} characters long.*a shorter PATH"):
        crontab.lines("lab", ["30 2 * * *"], ["wulf"], {"PATH": "/bin:" * 220, "HOME": "/root"})


def test_lines_of_others_that_came_later_stay():
    after = crontab.added("MAILTO=root\n", OURS) + "5 5 * * * backup\n"
    assert crontab.without(after, crontab.found(after, "lab")) == "MAILTO=root\n5 5 * * * backup\n"
    assert crontab.found(after, "other") is None


def test_a_half_of_our_lines_is_for_a_person():
    after = crontab.added("", OURS[:-1])
    with pytest.raises(ConfigError, match="crontab -e"):
        crontab.found(after, "lab")
