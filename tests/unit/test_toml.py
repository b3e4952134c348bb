"""TOML of users: what is wrong is named by file, line and key."""

from __future__ import annotations

from typing import Annotated

import msgspec
import pytest

from wulf.base import toml
from wulf.base.errors import ConfigError


class Inner(msgspec.Struct, forbid_unknown_fields=True):
    size: Annotated[int, msgspec.Meta(ge=0)]


class Outer(msgspec.Struct, forbid_unknown_fields=True):
    name: str
    part: list[Inner] = []
    by_name: dict[str, Inner] = {}


GOOD = """# a comment
name = "x"

[[part]]
size = 1
[[part]]
size = 2

[by_name.first]
size = 3
[by_name."second"]
size = 4
"""


def test_what_is_right_is_read_with_its_lines():
    found = toml.read(GOOD.replace('"second"', "second").encode(), "f.toml", Outer)
    assert [one.size for one in found.value.part] == [1, 2]
    with pytest.raises(ConfigError, match=r"^f\.toml:7: part\[1\]\.size: too large$"):
        found.fail("part[1].size", "too large")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (('name = "x"', ""), r"^f\.toml: name: missing; help$"),
        (("size = 2", "size = -2"), r"^f\.toml:7: part\[1\]\.size: expected a whole number >= 0; help$"),
        (("size = 1", "length = 1"), r"^f\.toml:5: part\[0\]\.length: unknown key; there are: "),
        (
            ("size = 3", 'size = "3"'),
            r"^f\.toml:10: by_name\.first\.size: expected a whole number, got text in quotes",
        ),
        (("[[part]]\nsize = 2", "[[part\nsize = 2"), r"^f\.toml:6: not TOML"),
        (("# a comment", "# \udcff"), r"^f\.toml: it is not UTF-8 text"),
    ],
)
def test_what_is_wrong_is_named(change, said):
    text = GOOD.replace(*change).encode(errors="surrogateescape")
    with pytest.raises(ConfigError, match=said):
        toml.read(text, "f.toml", Outer, "help")
