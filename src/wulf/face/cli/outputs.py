"""What every ``--json`` prints, and what is in the files of a run: name → where it is found, and its type.

`wulf config schema` and docs/reference/json.md are made of this table.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from wulf.base import catalogue, networks, records
from wulf.base.records import diagnosed, emulated, traced, watched
from wulf.base.tool import tools
from wulf.face.cli import json_records
from wulf.face.cli.verification import Verification
from wulf.node import lab
from wulf.tools.collectives.record import CollectiveTuning
from wulf.tools.hpcc.record import HpccResult
from wulf.tools.hpl.record import HplLaunch, HplManifest, HplResult
from wulf.tools.measure.page import export
from wulf.tools.run.record import Scaling, ScalingLaunch, ScalingManifest


class Output(NamedTuple):
    """One kind of JSON."""

    #: The commands that print it, or the file that it is in.
    where: str
    type: Any


OUTPUTS: dict[str, Output] = {
    "report": Output("wulf report --json", export.Export),
    "analysis": Output("RUN/analysis.json", records.Analysis),
    "comparisons": Output("wulf compare --json, wulf compare libraries --json", list[records.Comparison]),
    "diagnosis": Output("wulf diagnose --json", diagnosed.Diagnosis),
    "emulated": Output("wulf program emulate --json", emulated.Emulated),
    "emulation": Output("RUN/emulation.json (of a pattern)", emulated.EmulatedPattern),
    "predicted": Output("RUN/predicted.json (of a pattern)", emulated.PredictedBeside),
    "trace": Output("wulf program trace show --json, wulf program trace record --json", traced.TraceSummary),
    "prediction": Output("wulf program predict --json", records.Prediction),
    "predictions": Output("wulf program predict --json (of several traces)", list[records.Prediction]),
    "networks": Output("wulf program predict --json (with --list)", list[networks.NamedNetwork]),
    "watch": Output("wulf watch run --json, wulf watch show --json", watched.WatchReport),
    "mpi-parameters": Output("wulf tune parameters --json", list[records.MpiParameter]),
    "hpcc": Output("wulf bench hpcc --json", HpccResult),
    "hpl": Output("wulf bench hpl --json, wulf report --json (of a run of HPL), RUN/result.json", HplResult),
    "scaling": Output(
        "wulf program run --json (with several --ranks), wulf report --json (of such a run)", Scaling
    ),
    "scaling-manifest": Output("RUN/scaling.json", ScalingManifest),
    "scaling-launch": Output("RUN/launches.jsonl (one object a line)", ScalingLaunch),
    "runs": Output("wulf runs list --json, wulf runs list --json", list[json_records.Entry]),
    "labels": Output("wulf runs tag --json, wulf runs note --json", json_records.RunLabels),
    "config": Output("wulf config --json", json_records.Configuration),
    "collectives": Output("wulf tune collectives --json, RULES.json", CollectiveTuning),
    "topology": Output("wulf audit topology --json", records.LinkTopology),
    "embedding": Output("wulf audit topology --embed SHAPE --json", records.Embedding),
    "lab": Output("wulf lab status --json", list[lab.VirtualNode]),
    "facts": Output("wulf audit facts --json", list[records.NodeRecord]),
    "audit": Output("wulf audit --json", records.Audit),
    "mending": Output("wulf mend --json", records.Mending),
    "knobs": Output("wulf settings list --json", list[catalogue.Knob]),
    "knob": Output("wulf settings show --json", catalogue.Knob),
    "readings": Output("wulf settings get --json", list[json_records.Reading]),
    "change": Output(
        "wulf settings set --json, wulf rollback --json, wulf settings persist --json, wulf audit topology "
        "--routes K --json",
        records.ChangeOutcome,
    ),
    "status": Output("wulf settings status --json", list[records.NodeStatus]),
    "verification": Output("wulf settings verify --json", Verification),
    "tuning": Output("wulf report --json (of a tuning run), RUN/result.json", records.Tuning),
    "tuning-manifest": Output("RUN/tuning.json", records.TuneManifest),
    "trial": Output("RUN/trials.jsonl (one object a line)", records.Trial),
    "hpl-manifest": Output("RUN/hpl.json", HplManifest),
    "hpl-launch": Output("RUN/launches.jsonl (one object a line)", HplLaunch),
    "manifest": Output("RUN/manifest.json", records.Manifest),
    "record": Output("RUN/records.jsonl (one object a line)", records.NodeRecord | records.LaunchResult),
    **{
        tool.schema or tool.verb.split()[-1]: Output(f"wulf {tool.verb} --json", tool.part(tool.record))
        for tool in tools().values()
    },
}
