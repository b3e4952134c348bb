"""What other tuners find in the worlds of `tune_power`; they are installed by the dependency group ``peers``."""

from __future__ import annotations

import logging
import tempfile
import warnings
from pathlib import Path

import optuna
from ConfigSpace import ConfigurationSpace
from smac import HyperparameterOptimizationFacade, Scenario
from smac.runhistory import TrialValue

from bench.tune_power import KNOBS, TRIAL_S, World, confirmed, has_time
from wulf.base.records import Values


def tpe(world: World, seed: int) -> Values:
    """Return what Optuna's tree-structured Parzen estimator finds."""
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=seed, multivariate=True))
        while has_time(world):
            asked = study.ask()
            setting = {knob: "on" for knob in KNOBS if asked.suggest_categorical(knob, (False, True))}
            study.tell(asked, world.trial(setting)[0])
    return confirmed(world, {knob: "on" for knob, on in study.best_params.items() if on})


def smac(world: World, seed: int) -> Values:
    """Return what SMAC finds: a random forest, and an incumbent that is tried again."""
    logging.disable(logging.CRITICAL)
    space = ConfigurationSpace({knob: [False, True] for knob in KNOBS}, seed=seed)
    with tempfile.TemporaryDirectory() as directory, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        scenario = Scenario(space, n_trials=200, seed=seed, output_directory=Path(directory))
        facade = HyperparameterOptimizationFacade(
            scenario, _never_called, overwrite=True, logging_level=False
        )
        while has_time(world):
            asked = facade.ask()
            setting = {knob: "on" for knob in KNOBS if asked.config[knob]}
            facade.tell(asked, TrialValue(cost=world.trial(setting)[0], time=TRIAL_S))
        found = facade.intensifier.get_incumbent()
    logging.disable(logging.NOTSET)
    return confirmed(world, {knob: "on" for knob in KNOBS if found is not None and found[knob]})


def _never_called(_config: object, seed: int = 0) -> float:
    raise NotImplementedError(f"trials are asked for and told, seed {seed}")
