"""Twenty terms of the papers: from the README in three steps to the file that computes them."""

import re
from pathlib import Path

import pytest

import supermarket
from supermarket.experiment.statements import find
from tools import api_pages

ROOT = Path(__file__).parents[1]
NOTATION = (ROOT / "book" / "notation.md").read_text(encoding="utf-8")
ADDRESSES = api_pages.addresses(ROOT)
TERMS = {
    "longest queue that is expected": "limits/mean_field/fixed_point.py",
    "good set of Theorem 1.2": "limits/saturation/theorem.py",
    "hypotheses of Theorem 1.2": "limits/saturation/theorem.py",
    "slow functions": "limits/saturation/drifts.py",
    "general hypothesis on the maximum": "limits/mean_field/fixed_point.py",
    "mean-field path": "limits/mean_field/fixed_point.py",
    "relaxation time": "limits/mean_field/fixed_point.py",
    "spectral gap": "limits/mixing/exact.py",
    "see the same events": "runs/pairs/couple.py",
    "cavity process": "limits/fifo/cavity.py",
    "Pollaczek": "limits/fifo/depth.py",
    "doubly exponential tail": "limits/fifo/tails.py",
    "power-law tail": "limits/fifo/tails.py",
    "correction of order": "limits/mean_field/correction.py",
    "chance that all choices lie": "limits/growing/centre.py",
    "centre of the fluctuations": "limits/growing/centre.py",
    "scaled fluctuations": "limits/growing/diffusions.py",
    "Halfin": "limits/growing/centre.py",
    "largest utility": "limits/pools/utility.py",
}


@pytest.mark.parametrize(("term", "file"), TERMS.items())
def test_a_term_leads_to_its_file(term, file):
    assert "(book/notation.md)" in (ROOT / "README.md").read_text(encoding="utf-8")
    (row,) = [line for line in NOTATION.splitlines() if line.startswith("|") and term in line]
    name = re.findall(r"`(\w+)", row)[-1 if "Halfin" in term else 0]
    assert f"supermarket.{name}" in ADDRESSES
    assert ADDRESSES[f"supermarket.{name}"] in api_pages.link(row + "\n", ROOT)
    assert supermarket.homes()[name].replace(".", "/") + ".py" == file
    assert f"In ``supermarket/{file}``." in api_pages.entry(ROOT, ROOT / "supermarket" / file)


def test_a_theorem_leads_to_its_file_by_the_ledger():
    (function, *_) = find("bl-fixed-point").predicts
    assert function == "supermarket.limits.mean_field.fixed_point:fixed_point"
