"""The ledger is held to the code, the notebooks and the bibliography; and says what is wrong."""

import inspect
import json
import re
from pathlib import Path

import pytest

from supermarket import ParameterError
from supermarket.experiment.statements import Against, find, resolve, statements
from supermarket.limits import alternatives

ROOT = Path(__file__).parents[1]
LEDGER = list(statements().values())
IDS = [entry.id for entry in LEDGER]
BIBLIOGRAPHY = (ROOT / "book" / "references.bib").read_text(encoding="utf-8")


@pytest.mark.parametrize("entry", LEDGER, ids=IDS)
def test_an_entry_names_only_what_is_there(entry):
    for function in entry.predicts:
        assert callable(resolve(function)), function
    for name in filter(None, [entry.fails, entry.against and entry.against.value]):
        found = resolve(f"supermarket.limits.alternatives.{name}")
        assert found.__doc__
        assert "kwargs" not in inspect.signature(found).parameters
    for page in entry.pages:
        assert (ROOT / "notebooks" / f"{page}.ipynb").is_file(), page
    keys = [*re.findall(r"\{cite(?::\w+)?\}`([^`]+)`", entry.statement), entry.paper]
    for key in (one for some in keys for one in some.split(",") if one != "here"):
        assert f"{{{key.strip()}," in BIBLIOGRAPHY, key


@pytest.mark.parametrize("entry", LEDGER, ids=IDS)
def test_an_entry_of_a_paper_says_under_what_hypotheses(entry):
    """A theorem box has its quantifiers and hypotheses: what `fails` checks is among them."""
    if entry.box in ("theorem", "proposition") and entry.kind == "paper" and entry.pages:
        assert entry.hypotheses, entry.id
    if entry.fails:
        assert entry.hypotheses, entry.id


def test_no_function_of_the_alternatives_is_without_an_entry():
    """A function that no entry names is dead, or its entry names another by mistake."""
    named = {entry.fails for entry in LEDGER}
    named |= {entry.against.value for entry in LEDGER if entry.against}
    for file in Path(alternatives.__file__).parent.glob("[a-z]*.py"):
        module = resolve(f"supermarket.limits.alternatives.{file.stem}:__dict__")
        for name, function in module.items():
            if inspect.isfunction(function) and function.__module__.endswith(f".{file.stem}"):
                assert name.startswith("_") or f"{file.stem}:{name}" in named, (file.stem, name)


def test_every_verdict_of_a_notebook_has_an_entry_that_lists_the_page():
    """As far as the statement is written out where the verdict is made."""
    written = re.compile(r'"((?:[a-z0-9]+-)+[a-z0-9]+)"')
    for file in sorted((ROOT / "notebooks").glob("*.ipynb")):
        cells = json.loads(file.read_text(encoding="utf-8"))["cells"]
        code = "\n".join("".join(c["source"]) for c in cells if c["cell_type"] == "code")
        for name in set(written.findall(code)) & set(IDS):
            assert file.stem in find(name).pages, (file.stem, name)


def test_every_box_in_the_book_is_an_entry():
    box = re.compile(r"^```\{statement\} *(\S+)", re.MULTILINE)
    for file in [*(ROOT / "notebooks").glob("*.ipynb"), *(ROOT / "book").glob("*.md")]:
        text = file.read_text(encoding="utf-8")
        if file.suffix == ".ipynb":
            text = "\n".join("".join(cell["source"]) for cell in json.loads(text)["cells"])
        for name in box.findall(text):
            assert find(name), (file.name, name)
        assert not re.search(r"^```\{prf:(theorem|proposition|lemma)\}", text, re.MULTILINE), file


GOOD = {
    "id": "some-claim", "paper": "here", "name": "N", "standing": "derived", "statement": "x",
    "pages": ["p"],
}  # fmt: skip


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"id": "Some Claim"}, "is no id"),
        ({"name": ""}, "has no name"),
        ({"statement": "  "}, "has no statement"),
        ({"standing": "proved"}, "has a standing that is none of"),
        ({"kind": "claim"}, "has a kind that is none of"),
        ({"box": "fact"}, "has a box that is none of"),
        ({"paper": "Nobody1900"}, "is of a paper that the ledger does not list"),
        ({"pages": []}, "needs pages, or why it has none"),
        ({"unshown": "why"}, "needs pages, or why it has none"),
        ({"against": {"what": "w"}}, "needs a value or a scale"),
        ({"against": {"what": "w", "scale": 1}}, "has a scale without a reason"),
        ({"against": {"what": "w", "scale": 1, "why": "y", "of": "two"}}, "of neither kind"),
    ],
)
def test_a_faulty_entry_gets_one_sentence(change, sentence, tmp_path, monkeypatch):
    text = json.dumps({"statements": [GOOD | change]})  # JSON is YAML
    (tmp_path / "statements.yml").write_text(text)
    monkeypatch.setenv("SUPERMARKET_NOTEBOOKS", str(tmp_path))
    with pytest.raises(ParameterError, match=sentence):
        statements()


def test_an_id_stands_once_and_an_unknown_one_is_named(tmp_path, monkeypatch):
    text = json.dumps({"statements": [GOOD, GOOD]})
    (tmp_path / "statements.yml").write_text(text)
    monkeypatch.setenv("SUPERMARKET_NOTEBOOKS", str(tmp_path))
    with pytest.raises(ParameterError, match="some-claim stands twice in the ledger"):
        statements()
    monkeypatch.delenv("SUPERMARKET_NOTEBOOKS")
    with pytest.raises(ParameterError, match=r"did you mean bl-fixed-point\?|\(bl-fixed-point\)"):
        find("bl-fixed-pint")
    with pytest.raises(ParameterError, match="named in the ledger, is not there"):
        resolve("supermarket.limits.mean_field.fixed_point:fixed_pint")


def test_alternatives_are_called_with_the_parameters_that_they_name():
    against = Against("one choice less", value="mean_field:one_choice_less")
    (found,) = against.values(0.729, {"lam": 0.9, "d": 2, "k": 2, "seed": 7})
    assert found == pytest.approx(0.81)
    with pytest.raises(ParameterError, match=r"one_choice_less needs k: pass it to the verdict"):
        against.values(0.729, {"lam": 0.9, "d": 2})
