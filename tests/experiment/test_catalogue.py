"""What can be run, with which parameters; what is refused before anything starts."""

import json

import pytest

import supermarket
from supermarket import ParameterError
from supermarket.experiment import catalogue, rows
from supermarket.experiment.statements import statements


def test_every_notebook_of_the_book_is_there_and_fits_a_sweep():
    assert "fixed_point" in catalogue.names()
    for name in catalogue.names():
        notebook = catalogue.find_notebook(name)
        assert notebook.title
        assert notebook.question
        assert not rows.columns() & notebook.parameters.keys()


def test_an_installed_package_has_the_notebooks_inside(tmp_path, monkeypatch):
    package = tmp_path / "site-packages" / "supermarket"
    package.mkdir(parents=True)
    monkeypatch.setattr(supermarket, "__file__", str(package / "__init__.py"))
    assert catalogue.folder() == package.parent / "notebooks"
    (package / "notebooks").mkdir()
    assert catalogue.folder() == package / "notebooks"


@pytest.mark.parametrize(
    ("word", "value"),
    [
        ("n=1_000", 1000),
        ("lam=1e-3", 0.001),
        ("lam=0", 0.0),
        ("d=[2, 10]", [2, 10]),
        ("d=2,10", [2, 10]),
        ("d=4", [4]),
        ("mood=a=b", "a=b"),
        ("mood=", ""),
    ],
)
def test_words_become_values(notebooks, word, value):
    (parsed,) = catalogue.find_notebook("tiny").parse([word]).values()
    assert parsed == value
    assert type(parsed) is type(value)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["nn=1"], "choose from n, lam, d, mood, seed, threads (did you mean n?)."),
        (["n"], "n gives no value: write name=value"),
        (["n=1", "n=2"], "n is given twice"),
        (["n=1e6"], "n = 1000000.0 is not a whole number: write it with digits alone, such as"),
        (["n=ten"], "n = 'ten' is text, and a whole number is needed"),
        (["n=True"], "n = True is not a whole number"),
        (["n=99999999999999999999"], "n = 99999999999999999999 is out of range"),
        (["lam=nan"], "lam = 'nan' is text"),
        (
            ["lam=0,7"],
            "a number is needed: write lam = 0.7 without quotes",
        ),
        (["lam=0,07"], "write lam = 0.07 without quotes"),
        (["lam=80%"], "write lam = 0.8 without quotes"),
        (
            ["n=1,000"],
            "n = '1,000' is text, and a whole number is needed: write it with digits "
            "alone, such as n = 1000.",
        ),
        (["n=01000"], "such as n = 1000."),
        (["lam=1e999"], "lam = inf is not finite"),
        (["d=two"], "d = 'two' is not a list: write it as [1, 2], in quotes"),
        (["d=[1"], "d = '[1' is not a list"),
    ],
)
def test_nonsense_is_refused_with_one_sentence(notebooks, words, sentence):
    with pytest.raises(ParameterError) as refused:
        catalogue.find_notebook("tiny").parse(words)
    assert sentence in str(refused.value)
    assert "\n" not in str(refused.value)


def test_unknown_experiments_and_empty_folders_are_refused(notebooks, monkeypatch, tmp_path):
    with pytest.raises(ParameterError, match=r"choose from tiny \(did you mean tiny\?\)\.$"):
        catalogue.find_notebook("tny")
    (notebooks / "bare.ipynb").write_text(json.dumps({"cells": []}))
    with pytest.raises(ParameterError, match="needs one cell with the tag parameters"):
        catalogue.find_notebook("bare")
    monkeypatch.setenv("SUPERMARKET_NOTEBOOKS", str(tmp_path / "nowhere"))
    with pytest.raises(ParameterError, match="holds no notebooks"):
        catalogue.names()


def notebook(source="n: int = 1", **changes):
    cell = {"cell_type": "code", "metadata": {"tags": ["parameters"]}, "source": source}
    return json.dumps({"cells": [cell | changes]}).encode()


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        *((text, "is no Jupyter notebook of version 4: mend or remove it.") for text in (
            b"", b"{}", b"[]", b"null", b"\xff", b'{"cells": [1]}', b"[" * 10**5,
            b'{"cells": {"a": 1}}', notebook(metadata=None), notebook(source=[1]),
        )),
        (notebook(metadata={}), "needs one cell with the tag parameters: it has 0."),
        (notebook("n: int = ("), "its cell of parameters is not Python."),
        (notebook("n: int = " + "(" * 5000), "its cell of parameters is not Python."),
        (notebook("n = '\0'"), "its cell of parameters is not Python."),
        (notebook("n: int = f()"), "a text or a list of them as its value, not f()."),
        (notebook("n: int = b''"), "a text or a list of them as its value, not b''."),
        (notebook("n: Whoel[1] = 1"), "n: Whoel[1] is no kind of parameter"),
    ],
)  # fmt: skip
def test_a_notebook_that_is_none_gets_a_sentence_that_names_it(notebooks, content, sentence):
    (notebooks / "odd.ipynb").write_bytes(content)
    with pytest.raises(ParameterError) as refused:
        catalogue.find_notebook("odd")
    assert str(refused.value).startswith(str(notebooks / "odd.ipynb"))
    assert sentence in str(refused.value)
    assert catalogue.find_notebook("tiny").title == "A tiny experiment"


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        *((text, "statements.yml must be a ledger in YAML: papers by their keys, and a list")
          for text in (b"[1]", b"{", b"\xff", b"statements: 1", b"papers: [1]", b"[" * 10**4)),
        (b"statements: [1]", "1 in the ledger is no entry: write it as those that are there."),
        (b"statements: [{id: a}]", "a in the ledger has no paper."),
    ],
)  # fmt: skip
def test_a_ledger_that_is_none_gets_a_sentence(notebooks, content, sentence):
    (notebooks / "statements.yml").write_bytes(content)
    with pytest.raises(ParameterError) as refused:
        statements()
    assert sentence in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_ledger_without_entries_adds_none(notebooks):
    (notebooks / "statements.yml").write_text("# none yet")
    assert "tiny-mean" not in statements()
