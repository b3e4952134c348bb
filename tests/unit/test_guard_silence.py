"""What a guard cannot read is neither "as before" nor "gone": tools that die, files that do not open."""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.unit import guard_states as states
from tests.unit.guard_states import Node
from wulf.node.change.guard import FAILED

pytestmark = pytest.mark.root

#: What a tool is replaced by: its n-th call is killed, as by the kernel where memory is short.
DIES = """\
#!/bin/sh
calls=$(cat "$PLACE/calls")
echo $((calls + 1)) >"$PLACE/calls"
[ "$calls" != "$(cat "$PLACE/dies")" ] || kill -9 $$
exec {tool} "$@"
"""
#: A packet filter of before: rules are lines, and all calls die while a file says so.
IPTABLES = """\
#!/bin/sh
cd "$PLACE" || exit
[ ! -e dies ] || kill -9 $$
table=$3; how=$4; shift 4
rule="$table $*"
case $how in
-I) echo "$rule" >>rules ;;
-S) echo "-P $1 ACCEPT"; [ ! -e rules ] || sed -n "s/^$rule/-A $1/p" rules ;;
-D) grep -qxF "$rule" rules || exit 1; grep -vxF "$rule" rules >rest; mv rest rules ;;
esac
"""
#: Has the kernel make a table of that filter, as `iptables-legacy` would.
MAKES_TABLE = """\
import ctypes, socket
raw = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW)
name, size = ctypes.create_string_buffer(b"filter", 84), ctypes.c_uint32(84)
raise SystemExit(ctypes.CDLL(None).getsockopt(raw.fileno(), 0, 64, name, ctypes.byref(size)))
"""
RULES = "table inet f { chain in { type filter hook input priority 0; policy accept; }; }"
EXEMPT = "net.conntrack firewall eth0 tracking=exempt"


def dying(node: Node, tool: str, call: int) -> Path:
    """Let the `call`-th call of a tool from now on die, the first being 0; return the file that counts them."""
    planted = node.programs / tool
    real = shutil.which(tool, path="/usr/sbin:/sbin:/usr/bin:/bin")
    if planted.exists() and not (node.programs / f"{tool}.real").exists():
        real = str(planted.rename(node.programs / f"{tool}.real"))
    elif (node.programs / f"{tool}.real").exists():
        real = str(node.programs / f"{tool}.real")
    node.program(tool, DIES.format(tool=real))
    (node.directory / "calls").write_text("0\n")
    (node.directory / "dies").write_text(f"{call}\n")
    return node.directory / "calls"


def _ethtool(node: Node) -> tuple[str, Callable[[], str]]:
    return "nic.rx_usecs ethtool eth0 coalesce.rx-usecs=4", states.ethtool(node).read_text


def _firewall(node: Node) -> tuple[str, Callable[[], str]]:
    node.inside("nft", RULES)
    return EXEMPT, lambda: states.rules(node)


KINDS: dict[str, Callable[[Node], tuple[str, Callable[[], str]]]] = {
    "ip": states.route,
    "ethtool": _ethtool,
    "nft": _firewall,
    "tuned-adm": states.tuned_profile,
    "systemctl": states.unit,
    "ompi_info": states.mpi_parameter,
}


@pytest.mark.parametrize(
    "tool", [pytest.param(tool, marks=[pytest.mark.thorough] * (tool == "ethtool")) for tool in KINDS]
)
def test_whichever_call_of_a_tool_dies_nothing_is_said_to_be_back_that_is_not(node: Node, tool: str) -> None:
    step, value = KINDS[tool](node)
    before = value()
    for call in range(20):
        change = f"A{call}"
        node.make(change, step)
        assert value() != before
        calls = dying(node, tool, call)
        node.guard("undo", change)
        died = int(calls.read_text()) > call
        (node.directory / "dies").write_text("none\n")
        assert node.journal(change) in ("undone", "stuck")
        assert (node.journal(change), value() == before) != ("undone", False), call
        node.done("undo", change)
        assert value() == before
        if not died:
            break
    assert 0 < call < 19


#: What a tool says instead of an answer, and ends with 0.
SAID = {
    "nothing": "exit 0",
    "nothing, its output being closed": "exec >&- 2>&-",
    "words": "echo 'x y [ { } on'; echo default",
    "half of it": "echo 'table inet f {'; echo '10.9.0.0/24 dev eth0'; echo '10.9'",
    "bytes": "printf 'a\\0b\\n'",
    "without end": "yes 'table inet x { }' | head -c 50000000",
}


@pytest.mark.parametrize("said", SAID)
@pytest.mark.parametrize("tool", KINDS)
def test_what_is_no_answer_is_not_one_that_all_is_gone(node: Node, tool: str, said: str) -> None:
    step, value = KINDS[tool](node)
    before = value()
    node.make("A", step)
    planted = node.programs / tool
    real = planted.read_text() if planted.exists() else ""
    node.program(tool, f"#!/bin/sh\n{SAID[said]}\n")
    node.guard("status")
    node.guard("undo", "A")
    assert (node.journal("A"), value() == before) == ("stuck", False)
    planted.write_text(real) if real else planted.unlink()
    node.done("undo", "A")
    assert value() == before
    node.program(tool, f"#!/bin/sh\n{SAID[said]}\n")
    plan = "\t".join([*step.partition("=")[0].split(" ", 3), step.partition("=")[2]]) + "\n"
    assert node.guard("begin", "B", "me", "600", stdin=plan).returncode == FAILED


def test_a_tool_that_dies_always_leaves_the_change_stuck(node: Node) -> None:
    step, value = states.route(node)
    before = value()
    node.make("A", step)
    node.program("ip", "#!/bin/sh\nkill -9 $$\n")
    assert "not put back" in node.guard("undo", "A").stdout
    (node.programs / "ip").unlink()
    assert (node.journal("A"), value() == before) == ("stuck", False)
    node.done("undo", "A")
    assert value() == before


def test_what_somebody_else_has_set_is_theirs_although_the_first_look_dies(node: Node) -> None:
    step, value = _ethtool(node)
    node.make("A", step)
    states.nic(node, "-C", "eth0", "rx-usecs", "20")
    dying(node, "ethtool", 0)
    assert "left\tnic.rx_usecs" in node.done("undo", "A")
    assert "coalesce_rx_usecs=20\n" in value()


def traced(
    node: Node, path: str, inject: str, *words: str, call: str = "openat"
) -> subprocess.CompletedProcess[str]:
    """Let the guard do something while calls of a kind for a path fail, or end it; it must have met one."""
    if shutil.which("strace") is None:
        pytest.skip("strace is not installed (apt install strace)")
    trace = node.directory / "trace"
    argv = node.argv(*words)
    only = ["-P", path, "-e", f"trace={call}", "-e", f"inject={call}:{inject}"]
    argv[4:4] = ["strace", "-qq", "-o", str(trace), *only]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=100, check=False)
    assert "(INJECTED)" in trace.read_text() or "SIGKILL" in trace.read_text(), done
    return done


def test_a_file_that_does_not_open_still_has_the_lines_of_the_change(node: Node) -> None:
    file = states.write(node, "etc/90-wulf.conf", "a = 1\n")
    node.make("A", f"k stored - {file}=file:644:YSA9IDEKYiA9IDIK")
    assert file.read_text() == "a = 1\nb = 2\n"
    assert "not put back" in traced(node, str(file), "error=EIO", "undo", "A").stdout
    assert node.journal("A") == "stuck"
    node.done("undo", "A")
    assert file.read_text() == "a = 1\n"


def test_a_link_that_comes_between_two_looks_is_not_followed(node: Node) -> None:
    """A directory may be somebody's who would have root read a file for him, and write it as his."""
    if shutil.which("strace") is None:
        pytest.skip("strace is not installed (apt install strace)")
    file, secret = states.write(node, "his.conf", "a = 1\n"), states.write(node, "secret", "secret = 1\n")
    argv = node.argv("begin", "A", "me", "600")
    only = ["-P", str(file), "-e", "trace=openat", "-e", "inject=openat:delay_enter=3000000"]
    argv[4:4] = ["strace", "-qq", "-o", str(node.directory / "trace"), *only]
    plan = states.write(node, "plan", f"k\tstored\t-\t{file}\tfile:644:YSA9IDEKYiA9IDIK\n")
    with plan.open() as text:
        begun = subprocess.Popen(argv, stdin=text, stdout=subprocess.DEVNULL)
    time.sleep(1)
    (node.directory / "link").symlink_to(secret)
    (node.directory / "link").rename(file)
    begun.wait(60)
    base64 = "c2VjcmV0ID0gMQo="
    assert all(base64 not in saved.read_text() for saved in node.state.glob("tx/A/saved.*"))


@pytest.mark.parametrize("later", [False, True], ids=["the last step", "another step follows"])
def test_a_line_goes_although_the_guard_was_ended_right_after_it_wrote_it(node: Node, later: bool) -> None:
    """Nothing had yet recorded that the line was the change's: it stayed, and the change was "undone"."""
    file, other = (states.write(node, f"etc{number}/90-wulf.conf", "a = 1\n") for number in (1, 2))
    plan = f"k\tstored\t-\t{file}\tfile:644:YSA9IDEKYiA9IDIK\n"
    node.done("begin", "A", "me", "600", stdin=plan + (plan.replace(str(file), str(other)) if later else ""))
    killed = traced(node, str(file.parent), "signal=KILL", "apply", "A", call="fsync")
    assert killed.returncode in (-9, 137)
    assert file.read_text() == "a = 1\nb = 2\n"
    other.write_text("a = 1\ntheirs = 1\n")
    node.done("undo", "A")
    assert (file.read_text(), other.read_text()) == ("a = 1\n", "a = 1\ntheirs = 1\n")


@pytest.mark.parametrize("verb", ["apply", "undo"])
@pytest.mark.parametrize("when", [1, 2, 3])
def test_a_directory_that_does_not_open_is_not_one_without_files(node: Node, verb: str, when: int) -> None:
    files = [
        states.write(node, f"cpu{cpu}/state{state}/disable", "0\n") for cpu in (0, 1) for state in (0, 1)
    ]
    plan = f"k\tidle_states\t-\t{node.directory}/cpu*/state*/disable\tdisabled: state1\n"
    node.done("begin", "A", "me", "600", stdin=plan)
    if verb == "undo":
        node.done("apply", "A")
    traced(node, f"{node.directory}/cpu0/.", f"error=ENOMEM:when={when}", verb, "A")
    node.guard("undo", "A")
    assert node.journal("A") == "undone"
    assert {file.read_text() for file in files} == {"0\n"}


def test_rules_stay_ours_while_nft_is_not_there(node: Node) -> None:
    node.program("iptables-legacy", IPTABLES)
    node.inside(sys.executable, "-c", MAKES_TABLE)
    node.inside("nft", RULES)
    node.make("A", EXEMPT)
    nft = shutil.which("nft", path="/usr/sbin:/sbin:/usr/bin:/bin") or ""
    node.inside("mount", "--bind", "/dev/null", nft)
    assert "nft is not installed any more" in node.guard("undo", "A").stdout
    node.inside("umount", nft)
    assert node.journal("A") == "stuck"
    node.done("undo", "A")
    assert "wulf" not in states.rules(node)
    assert (node.directory / "rules").read_text() == ""


def test_a_legacy_rule_is_gone_when_its_program_says_so(node: Node) -> None:
    node.program("iptables-legacy", IPTABLES)
    node.inside(sys.executable, "-c", MAKES_TABLE)
    node.make("A", EXEMPT)
    rules = node.directory / "rules"
    both = rules.read_text()
    states.write(node, "dies", "")
    assert "not put back" in node.guard("undo", "A").stdout
    assert (node.journal("A"), rules.read_text()) == ("stuck", both)
    (node.directory / "dies").unlink()
    rules.write_text(both.splitlines(keepends=True)[1])  # somebody else has taken one away
    node.done("undo", "A")
    assert rules.read_text() == ""


@pytest.mark.parametrize(
    "said", [pytest.param(said, marks=[pytest.mark.thorough] * (said != "nothing")) for said in SAID]
)
@pytest.mark.parametrize("how", ["-I", "-D", "-S", "-*"])
def test_a_filter_of_before_that_only_says_so_has_changed_nothing(node: Node, said: str, how: str) -> None:
    """It ended with 0 and said nothing: the rule stayed, and the change was "undone"."""
    lies = IPTABLES.replace("case $how in\n", f"case $how in\n{how}) {SAID[said]}; exit 0 ;;\n")
    node.program("iptables-legacy", IPTABLES)
    node.inside(sys.executable, "-c", MAKES_TABLE)
    node.make("A", EXEMPT)
    rules = node.directory / "rules"
    ours = rules.read_text()
    node.program("iptables-legacy", lies)
    node.guard("undo", "A")
    assert (node.journal("A"), rules.read_text()) == (("undone", "") if how == "-I" else ("stuck", ours))
    node.program("iptables-legacy", IPTABLES)
    node.done("undo", "A")
    assert rules.read_text() == ""
    node.program("iptables-legacy", lies)
    node.done("begin", "B", "me", "600", stdin=EXEMPT.replace(" ", "\t").replace("=", "\t") + "\n")
    assert (node.guard("apply", "B").returncode == 0) == (how == "-D")
    node.program("iptables-legacy", IPTABLES)
    node.done("undo", "B")
    assert rules.read_text() == ""


#: What a tool is asked for: all else it is told to do.
ASKED = {
    "ip": "*show*|*get*|-V",
    "ethtool": "-c*|-k*|-g*|-a*|-i*|--version|eth0|--json*",
    "nft": "*list*|--version",
    "tuned-adm": "active*|list*|*verify*",
    "systemctl": "is-*|*show*|cat*|--version",
}
ONLY_ANSWERS = '#!/bin/sh\ncase "$*" in {asked}) exec {real} "$@" ;; esac\n'


@pytest.mark.parametrize("tool", ASKED)
def test_what_a_tool_only_says_to_have_done_is_not_done(node: Node, tool: str) -> None:
    step, value = KINDS[tool](node)
    before = value()
    node.make("A", step)
    made = value()
    dying(node, tool, -1)
    real = node.programs / f"{tool}.real"
    path = real if real.exists() else shutil.which(tool, path="/usr/sbin:/sbin:/usr/bin:/bin")
    node.program(tool, ONLY_ANSWERS.format(asked=ASKED[tool], real=path))
    node.guard("undo", "A")
    assert (node.journal("A"), value()) == ("stuck", made)
    node.program(tool, f'#!/bin/sh\nexec {path} "$@"\n')
    node.done("undo", "A")
    assert value() == before


def test_rules_that_nft_only_says_to_have_made_are_not_made(node: Node) -> None:
    node.inside("nft", RULES)
    before = states.rules(node)
    nft = shutil.which("nft", path="/usr/sbin:/sbin:/usr/bin:/bin")
    node.program("nft", ONLY_ANSWERS.format(asked=ASKED["nft"], real=nft))
    node.done("begin", "A", "me", "600", stdin=EXEMPT.replace(" ", "\t").replace("=", "\t") + "\n")
    done = node.guard("apply", "A")
    assert (done.returncode, "no rule for eth0 is there" in done.stdout) == (FAILED, True)
    assert (node.journal("A"), states.rules(node)) == ("undone", before)


#: As nft does where rules are of iptables-nft: it warns, in the middle of a line where the listing is long.
WARNS = """\
import subprocess, sys
done = subprocess.run(["{nft}", *sys.argv[1:]], stdout=subprocess.PIPE)
at = max(0, done.stdout.find(b'cept comment "wulf"'))
sys.stdout.buffer.write(done.stdout[:at])
sys.stdout.flush()
sys.stderr.write("# Warning: table ip nat is managed by iptables-nft, do not touch!\\n")
sys.stdout.buffer.write(done.stdout[at:])
sys.exit(done.returncode)
"""


def test_what_a_tool_warns_of_is_no_part_of_what_it_says(node: Node) -> None:
    node.inside("nft", RULES)
    before = states.rules(node)
    nft = shutil.which("nft", path="/usr/sbin:/sbin:/usr/bin:/bin")
    node.program("nft", f"#!{sys.executable} -S\n{WARNS.format(nft=nft)}")
    node.make("A", EXEMPT)
    assert 'accept comment "wulf"' in states.rules(node)
    node.done("undo", "A")
    assert states.rules(node) == before


#: Writes down that it was called, and hangs.
HANGS = '#!/bin/sh\necho "$@" >>"$PLACE/hung"\nexec sleep 1000\n'
SETTINGS = [
    f"k{i} ethtool eth0 coalesce.{name}=4" for i, name in enumerate(("rx-usecs", "tx-usecs", "rx-frames"))
]


def test_who_looks_asks_a_tool_that_hangs_once(node: Node) -> None:
    """Who puts something back waits for who looks."""
    states.ethtool(node)
    node.keep("A", *SETTINGS)
    node.program("ethtool", HANGS)
    assert all("it is not asked again" in row[6] for row in node.rows("set"))
    assert len((node.directory / "hung").read_text().splitlines()) == 1


@pytest.mark.thorough
def test_a_tool_that_hangs_does_not_keep_the_rest_from_coming_back(node: Node) -> None:
    """Each of its settings was waited for again and again, and a watcher ended the undo before it came to the rest."""
    states.ethtool(node)
    file = states.write(node, "other", "old\n")
    node.make("A", *SETTINGS, f"other file - {file}=new")
    node.program("ethtool", HANGS)
    undo = subprocess.run(node.argv("undo", "A"), capture_output=True, text=True, timeout=400, check=False)
    assert all(f"k{number} (" in undo.stdout for number in range(3))
    assert "other (" not in undo.stdout
    assert (node.journal("A"), file.read_text()) == ("stuck", "old\n")
    assert len((node.directory / "hung").read_text().splitlines()) == 2


def test_a_tool_that_complains_without_end_takes_no_memory(node: Node) -> None:
    step, value = states.route(node)
    before = value()
    node.make("A", step)
    node.program("ip", '#!/bin/sh\nhead -c 10000000 /dev/zero >&2 && touch "$PLACE/all"\nexit 1\n')
    assert "not put back" in node.guard("undo", "A").stdout
    assert not (node.directory / "all").exists()
    (node.programs / "ip").unlink()
    node.done("undo", "A")
    assert value() == before


@pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed (apt install strace)")
def test_a_cpu_that_is_offline_keeps_the_others_from_nothing(node: Node) -> None:
    """Its files of the frequency stay, and are EBUSY."""
    first, second = (states.write(node, f"cpu{number}/governor", "old\n") for number in (0, 1))
    busy = ["strace", "-qq", "-o", f"{node.directory}/trace", "-P", str(second), "-e", "trace=read,write"]
    busy += ["-e", "inject=read,write:error=EBUSY"]

    def offline(*words: str) -> subprocess.CompletedProcess[str]:
        argv = [*node.argv()[:4], *busy, *node.argv(*words)[4:]]
        plan = f"k\tfile\t-\t{node.directory}/cpu*/governor\tnew\n"
        return subprocess.run(argv, input=plan, capture_output=True, text=True, timeout=60, check=False)

    for words in (("begin", "A", "me", "600"), ("apply", "A"), ("undo", "A")):
        assert offline(*words).returncode == 0, words
        assert first.read_text() == ("new\n" if words[0] == "apply" else "old\n")
    second.write_text("old\n")
    node.make("B", f"k file - {node.directory}/cpu*/governor=new")
    first.write_text("theirs\n")
    # What is set on it comes back when it does; what somebody has set on another one stays.
    assert "does not take" in offline("undo", "B").stdout.partition("error\tnot put back")[2]
    assert (first.read_text(), node.journal("B")) == ("theirs\n", "stuck")
    second.write_text("new\n")
    node.done("recover")
    assert (first.read_text(), second.read_text()) == ("theirs\n", "old\n")
