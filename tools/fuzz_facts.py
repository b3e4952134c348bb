"""Fuzz the parsers of node captures, guided by coverage: no crash, no hang, every fact a value or a reason.

    pip install atheris; python tools/fuzz_facts.py CORPUS_DIRECTORY -max_total_time=600 -max_len=20000

CORPUS_DIRECTORY is filled from the captures among the tests when it is empty. Needs atheris, which is not among
the project's dependencies: it is for now and then, the tests have their own fuzzing (hypothesis).
"""

from __future__ import annotations

import sys
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["wulf.node.facts", "wulf.base.checks"]):
    from wulf.base import catalogue
    from wulf.base.checks.evaluate import evaluate
    from wulf.node.facts.parse import parse

GOLDEN = Path(__file__).resolve().parents[1] / "tests" / "golden"
KNOBS = list(catalogue.knobs().values())
CHECKS = list(catalogue.checks().values())
RULES = list(catalogue.consistencies().values())
KINDS = ("facts", "unknown", "absent", "unsupported")


def try_one(data: bytes) -> None:
    """Parse and judge one input."""
    node = parse("n1", data.decode("utf-8", "replace"), "eth0", KNOBS)
    named = [name for kind in KINDS for name in getattr(node, kind)]
    assert len(named) == len(set(named))
    assert all(getattr(node, kind)[name] for kind in KINDS[1:] for name in getattr(node, kind))
    evaluate([node], CHECKS, KNOBS, RULES, "hpc")


def main(arguments: list[str]) -> None:
    """Fill the corpus and fuzz."""
    corpus = Path(arguments[1]) if len(arguments) > 1 and not arguments[1].startswith("-") else None
    if corpus is not None and not corpus.is_file():
        corpus.mkdir(parents=True, exist_ok=True)
        for path in GOLDEN.rglob("*.tree"):
            text = path.read_text(encoding="utf-8").replace("host0", "eth0")
            blocks = text.split("\n#")
            for index in range(0, len(blocks), 8):
                (corpus / f"{path.stem}-{index}").write_text(
                    "#" + "\n#".join(blocks[index : index + 8]), encoding="utf-8"
                )
    atheris.Setup(arguments, try_one)
    atheris.Fuzz()


if __name__ == "__main__":
    main(sys.argv)
