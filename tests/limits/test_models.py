"""Every prediction that takes a model: it refuses what it does not know, and no n is left out."""

import inspect
import math
from dataclasses import replace
from importlib import import_module
from pkgutil import walk_packages

import pytest

from supermarket import Lomax, ParameterError, Supermarket, limits
from supermarket.limits.saturation.drifts import modes

SHOP = Supermarket(50, 3, 0.8)
GIVEN = {
    "counts": [[50, 40 + i, 10 + i * i % 7, 0] for i in range(8)],
    "depth": 100.0,
    "eps": 0.1,
    "functions": modes(SHOP, 2),
    "jobs": 2,
    "k": 2,
    "levels": 4,
    "longest": 2,
    "tail": 1e-3,
    "times": [1.0],
}
OWN = {  # the model that a prediction is for, where it is not the shop
    "max_queue_law_one_choice": replace(SHOP, d=1),
    "deep_tail": replace(SHOP, service=Lomax(2.5)),
    "length_counts": replace(SHOP, d=30, n=1000),
}


def takes_a_model(function):
    first = next(iter(inspect.signature(function).parameters.values()), None)
    return first is not None and first.annotation is Supermarket


PREDICTIONS = [
    pytest.param(found, id=name)
    for home in walk_packages(limits.__path__, f"{limits.__name__}.")
    for name, found in inspect.getmembers(import_module(home.name), inspect.isfunction)
    if found.__module__ == home.name and name[0] != "_" and takes_a_model(found)
]


def asked(prediction, *other, **changes):
    of_memory = prediction.__module__ == "supermarket.limits.mean_field.memory"
    usual = replace(SHOP, policy="memory") if of_memory else SHOP
    _, *others = inspect.signature(prediction).parameters.values()
    given = {one.name: GIVEN[one.name] for one in others if one.default is one.empty}
    model = replace(OWN.get(prediction.__name__, usual), **changes)
    return prediction(*(other or (model,)), **given)


def test_all_are_found():
    assert len(PREDICTIONS) > 40


@pytest.mark.parametrize("prediction", PREDICTIONS)
def test_a_prediction_refuses_other_policies_a_load_of_one_and_what_is_no_model(prediction):
    asked(prediction)
    other = "jsq" if prediction.__module__ == "supermarket.limits.mean_field.memory" else "memory"
    with pytest.raises(ParameterError, match="policy"):
        asked(prediction, policy=other)
    with pytest.raises(ParameterError, match=r"^lam = 1 is out of range: choose 0 < lam < 1"):
        asked(prediction, lam=1.0)
    with pytest.raises(ParameterError, match=r"^model = 0.9 is no Supermarket: give"):
        asked(prediction, 0.9)


@pytest.mark.parametrize("prediction", PREDICTIONS)
def test_a_limit_does_not_depend_on_n_and_the_others_say_so(prediction):
    if "its n does not matter" in inspect.getdoc(prediction).lower():
        assert repr(asked(prediction, n=math.inf)) == repr(asked(prediction))
    else:
        with pytest.raises(ParameterError, match=r"^n = inf is a limit, and this depends on n:"):
            asked(prediction, n=math.inf)
