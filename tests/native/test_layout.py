"""Programs in C share only what is in core/, and the format of traces."""

from __future__ import annotations

import re

from tests.native.programs import SOURCE


def test_a_program_includes_its_own_headers_and_those_of_core() -> None:
    strangers = [
        f"{source.relative_to(SOURCE)}: {header}"
        for source in SOURCE.glob("*/**/*.[ch]")
        if (program := source.relative_to(SOURCE).parts[0]) not in ("third_party", "tests")
        for header in re.findall(r'#include "(\w+/[\w.]+)', source.read_text())
        if header.split("/")[0] not in (program, "core") and header != "trace/format.h"
        if header != "tests/expect.h" or source.parent.name != "tests"
    ]
    assert strangers == []
