"""Command lines that make no sense, over folders that hold anything: one sentence each.

Some dozens of them, always the same; `--long` draws five hundred others, and starts their kernels.
"""

import json
import os
import shutil
from contextlib import closing
from itertools import count

import pytest
from command_lines import Lines
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

pytestmark = pytest.mark.book  # processes of their own: once is enough


def one_of(*texts):
    """Draw one of some texts, of which "x * 3000" stands for so many of these."""

    def whole(text):
        part, times, number = text.rpartition(" * ")
        return part * int(number) if times else text

    return st.sampled_from(texts).map(whole)


GOOD = {
    "claim": "c", "statement": "tiny-mean", "kind": "paper", "relation": "equal", "against": [1.5],
    "hypotheses": [], "predicted": 1.0, "measured": 1.01, "low": 0.9, "high": 1.1,
    "confidence": 0.99, "effective": 10.0, "outcome": "holds", "parameters": {}, "source": "s",
    "refused": "",
}  # fmt: skip
ODD_TEXT = st.one_of(
    one_of("", " ", "-", "--", "a\nb", "\udcff", "é ü", "{draft}", "%s", "#", "../x", "x * 3000"),
    st.text(st.characters(codec=None, exclude_characters="\0"), max_size=20),
)
ODD_VALUE = st.one_of(
    one_of("1e6", "1e999", "-1", "nan", "0,7", "[2, 3", "[[1]]", "1/0", "__import__('os')", "()",
           "9 * 5000", "[ * 500", "1+ * 9999", "True", "None", "0x10", "0777", "{1: 2}"),
    ODD_TEXT,
)  # fmt: skip
NUMBER = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.just(10**400), st.text(max_size=5)
)
JSON = st.recursive(
    NUMBER,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(list(GOOD)), inner),
    max_leaves=6,
)
DAMAGED = st.one_of(
    st.builds(lambda keys, value: [GOOD | dict.fromkeys(keys, value)],
              st.lists(st.sampled_from(list(GOOD)), min_size=1, max_size=2), JSON),
    st.builds(lambda key: [{k: v for k, v in GOOD.items() if k != key}],
              st.sampled_from(list(GOOD))),
    st.builds(lambda key, number: [GOOD | {key: number}],
              st.sampled_from(["predicted", "measured", "low", "high", "confidence", "effective"]),
              st.floats(allow_nan=False, allow_infinity=False) | st.integers()),
    JSON,
).map(json.dumps)  # fmt: skip
RAW = st.one_of(
    one_of("", "{}", "[]", "[{}]", "null", '{"a"', "[ * 100000").map(str.encode),
    st.binary(max_size=30),
)
VERDICTS = st.one_of(DAMAGED.map(str.encode), RAW)
CELLS = one_of(
    "n: int = f()", "n: int = (", "n: Whole[1] = {1: 2}", "n: Foo = 1", "n = 1", "\0", "n: int = 1",
    "n: int = b'x'", "( * 5000", "n: list[int] = [[1], ...]", "x: str = '\\n'",
)  # fmt: skip


def notebook(code, **changes):
    cell = {
        "cell_type": "code", "id": "a", "metadata": {"tags": ["parameters"]}, "source": code,
        "outputs": [], "execution_count": None,
    }  # fmt: skip
    return json.dumps({"cells": [cell | changes], "metadata": {}, "nbformat": 4})


NOTEBOOK = st.one_of(
    CELLS.map(notebook),
    st.builds(lambda value, key: notebook("n: int = 1", **{key: value}),
              JSON, st.sampled_from(["metadata", "source", "outputs", "cell_type"])),
    JSON.map(json.dumps),
).map(str.encode) | RAW  # fmt: skip
GRID = st.one_of(
    one_of(
        "n: [5]\nlam: [0.5, 2.0]\n", "n: [01000]\n", "n: 5\n", "n: [5]\nn: [6]\n", "[1]\n",
        "n: [2001-01-01]\n", "n: &a [*a]\n", "n: !!python/object:os.system [x]\n", "seed: [1]\n",
        "replicas: 2\n", "n: [1, 1]\n", "d: [[1], 2]\n", "mood: ['\\udcff']\n", "? [1]\n: 2\n",
        "a: &a [x,x]\nb: &b [*a,*a]\nc: [*b,*b]\n", "n: [.nan]\n", "lam: [1e400]\n",
    ).map(str.encode),
    RAW,
)  # fmt: skip


def mostly(usual, odd):
    """Draw what makes sense in three of four cases: what is odd is then looked at alone."""
    return st.integers(0, 3).flatmap(lambda n: odd if n == 3 else st.just(usual))


EXPERIMENT = mostly(
    "tiny", one_of("odd", "tny", "../tiny", "tiny.ipynb", ".tiny", "-") | ODD_TEXT
)  # fmt: skip
PLACES = one_of(
    "file", "file/x", "link", "link/x", "gone", ".", "/", "/proc/x", "swept", "done", "/dev/null",
    "linked", "{new}/[x]", "a/ * 1500", "new", "",
)  # fmt: skip
OUT = mostly("new", PLACES | ODD_TEXT)
VALUE = st.builds("{}={}".format, one_of("n", "lam", "d", "mood", "seed", "nn"), ODD_VALUE)
WORDS = mostly(
    ["n=5"], st.lists(VALUE | ODD_TEXT | one_of("mood=exit", "mood=die", "d=[1, 2]"), max_size=3)
)
FLAGS = mostly(
    [],
    st.lists(
        one_of("--json", "--retry", "--failed", "--summary", "--help", "--workers=-1",
               "--workers=x", "--replicas=2", "--replicas=0", "--scheduler=x", "--nonsense", "-",
               "--out", "--"),
        max_size=2,
    ),
)  # fmt: skip


def files(**optional):
    """Draw files, each of which is as a person left it in one of four cases."""
    names = {name.replace("__", "/").replace("_", "."): of for name, of in optional.items()}
    drawn = st.fixed_dictionaries({name: mostly(None, of) for name, of in names.items()})
    return drawn.map(lambda found: {name: of for name, of in found.items() if of is not None})


LEDGERS = files(notebooks__statements_yml=RAW, notebooks__odd_ipynb=NOTEBOOK)
LINE = st.one_of(
    st.tuples(
        st.builds(lambda e, words, o, f: ["run", e, *words, "--out", o, *f],
                  EXPERIMENT, WORDS, OUT, FLAGS),
        LEDGERS,
    ),
    st.tuples(
        st.builds(lambda e, g, o, f: ["sweep", e, g, "--out", o, "--workers", "1", *f],
                  EXPERIMENT, mostly("grid", PLACES), OUT, FLAGS),
        st.builds(lambda grid, rest: rest | {"work/grid": grid}, GRID, LEDGERS),
    ),
    st.tuples(
        st.builds(lambda f: ["check", "done", *f], FLAGS),
        st.builds(lambda verdicts, rest: rest | {"work/done/verdicts/tiny.json": verdicts},
                  VERDICTS, files(work__done__profile_json=VERDICTS, notebooks__findings_yml=RAW)),
    ),
    st.tuples(
        st.builds(lambda o, f: ["check", o, *f], mostly("swept", PLACES | ODD_TEXT), FLAGS),
        st.builds(lambda plan, points: {"work/swept/sweep.json": plan,
                                        "work/swept/points/x.parquet": points}, VERDICTS, RAW),
    ),
    st.tuples(
        st.builds(lambda e, f: ["describe", e, *f], mostly("odd", EXPERIMENT), FLAGS)
        | st.builds(lambda f: ["list", *f], FLAGS),
        st.builds(lambda odd: {"notebooks/odd.ipynb": odd}, NOTEBOOK),
    ),
    st.tuples(st.lists(ODD_TEXT, max_size=3), st.just({})),
)  # fmt: skip


@pytest.fixture(scope="module")
def lines():
    with closing(Lines()) as lines:
        yield lines


def laid(folder, notebooks, files):
    """Make the folders of one command line; nothing outside the working folder may change."""
    shutil.copytree(notebooks, folder / "notebooks")
    for name in ("work/swept/points", "work/done/verdicts", "outside"):
        (folder / name).mkdir(parents=True)
    (folder / "outside" / "file").write_text("mine")
    (folder / "work" / "file").write_text("mine")
    (folder / "work" / "link").symlink_to("../outside/file")
    (folder / "work" / "gone").symlink_to("nowhere")
    (folder / "work" / "linked").mkdir()
    for name in ("verdicts", "figures", "points", ".tiny.part", "tiny.html.part"):
        (folder / "work" / "linked" / name).symlink_to(folder / "outside")
    for name, content in files.items():
        (folder / name).write_bytes(content)


def others(folder):
    return {
        str(file.relative_to(folder)): file.read_bytes()
        for file in folder.rglob("*")
        if file.is_file() and "work" not in file.relative_to(folder).parts[:1]
    }


def judge(words, status, output, said):
    """Check how a command ended: with a status of its own, and one sentence if it failed.

    A traceback is more than one.
    """
    shown = [word[:40] for word in words], status, output[-500:], said[-2000:]
    assert status in (0, 1, 2, 130), shown
    if status == 0:
        assert said == "", shown
    elif said or not output:  # a check, or points that failed, say it on stdout
        assert said.endswith((".\n", ".`\n")), shown
        assert said.count("\n") == 1, shown
        assert len(said) <= 520, shown


def test_any_command_line_ends_with_one_sentence(notebooks, lines, long, tmp_path):
    numbers, environment = count(), dict(os.environ) | {"SUPERMARKET_CACHE": "off"}

    @settings(
        max_examples=500 if long else 60,
        derandomize=not long,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
        phases=[Phase.generate],  # what fails is short enough to be read, and dear to be repeated
    )
    @given(LINE)
    def check(line):
        words, files = line
        folder = tmp_path / str(next(numbers))
        laid(folder, notebooks, files)
        before = others(folder)
        environment["SUPERMARKET_NOTEBOOKS"] = str(folder / "notebooks")
        status, output, said = lines.run(words, folder / "work", environment, kernels=long)
        judge(words, status, output, said)
        assert others(folder) == before
        shutil.rmtree(folder)

    check()
