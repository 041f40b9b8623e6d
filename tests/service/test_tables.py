"""Columns of files as people have them: read rightly, or refused by a sentence."""

import bz2
import gzip
import io
import lzma
import os
import zipfile

import numpy as np
import pytest
from typer.testing import CliRunner

from supermarket import ParameterError
from supermarket.__main__ import app
from supermarket.experiment import catalogue, jupyter
from supermarket.service import Empirical
from supermarket.service.named import named_law

PLAIN = b"seconds\n1.5\n2.5\n"


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def write(path, content):
    os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
    with open(path, "wb") as file:
        file.write(content if isinstance(content, bytes) else content.encode())


def zipped(*names):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name in names:
            archive.writestr(name, PLAIN)
    return file.getvalue()


def refusal(value):
    with pytest.raises(ParameterError) as caught:
        named_law("service", value)
    told = str(caught.value)
    assert told.startswith(f"service = {value!r}: ")
    assert told.endswith(".")
    assert "\n" not in told
    assert ". " not in told
    return told


READ = {
    "ends in a comma": ("a.csv:seconds", "seconds,size\n1.5,100,\n2.5,300,\n"),
    "one column, ends in a comma": ("a.csv", "seconds\n1.5,\n2.5,\n"),
    "commas end the head too": ("a.csv:seconds", "seconds,size,,\n1.5,100\n2.5,300,\n"),
    "semicolons": ("a.csv:seconds", "id;seconds\na;1.5\nb;2.5\n"),
    "semicolons and decimal commas": ("a.csv:seconds", "id;seconds\na;1,5\nb;2,5\n"),
    "decimal commas, one of three digits": ("a.csv:s", "id;s\na;1,500\nb;2,5\n"),
    "decimal commas in quotes": ("a.csv:seconds", 'id,seconds\na,"1,5"\nb,"2,5"\n'),
    "decimal commas between tabs": ("a.tsv", "seconds\n1,5\n2,5\n"),
    "decimal commas and exponents": ("a.tsv", "seconds\n15,0e-1\n2,5\n"),
    "a comma in a head of semicolons": ("a.csv:s", "id, of a job;s\na;1.5\nb;2.5\n"),
    "a decimal comma, and a comma in the head": ("a.csv:s", "id, of a job;s\na;1,5\nb;2,5\n"),
    "a semicolon in a head of commas": ("a.csv:s", "id; of a job,s\na,1.5\nb,2.5\n"),
    "tabs": ("a.tsv:seconds", "id\tseconds\na\t1.5\nb\t2.5\n"),
    "tabs, an empty cell": ("a.tsv:seconds", "seconds\tnote\n1.5\t\n2.5\tx\n"),
    "bars": ("a.csv:seconds", "id|seconds\na|1.5\nb|2.5\n"),
    "blanks": ("a.txt:seconds", "id seconds\na   1.5\n b 2.5 \n"),
    "blanks in the head": ("a.csv:upstream time", "upstream time,id\n1.5,a\n2.5,b\n"),
    "blanks in the only head": ("a.csv", "upstream time\n1.5\n2.5\n"),
    "blanks around cells": ("a.csv: seconds", "id, seconds \na, 1.5 \nb,  2.5\n"),
    "an index column": ("a.csv:seconds", ",seconds\n0,1.5\n1,2.5\n"),
    "rows of commas above": ("a.csv:seconds", ",,\nid,seconds\na,1.5\nb,2.5\n"),
    "empty lines": ("a.csv", "\n\nseconds\n1.5\n\n2.5\n\n"),
    "an upper-case ending": ("A.CSV", PLAIN),
    "any ending": ("times.log", PLAIN),
    "no ending": ("times:seconds", PLAIN),
    "gzip, an upper-case ending": ("A.CSV.GZ", gzip.compress(PLAIN)),
    "gzip by another name": ("a.csv", gzip.compress(PLAIN)),
    "bzip2": ("a.csv.bz2", bz2.compress(PLAIN)),
    "xz": ("a.csv.xz:seconds", lzma.compress(PLAIN)),
    "zip": ("a.csv.zip", zipped("a.csv")),
    "a mark of the byte order": ("a.csv:seconds", b"\xef\xbb\xbf" + PLAIN),
    "UTF-16": ("a.csv", PLAIN.decode().encode("utf-16")),
    "UTF-16, packed": ("a.csv.gz", gzip.compress(PLAIN.decode().encode("utf-16"))),
    "UTF-8 in a head": ("a.csv:für x", "für x,y\n1.5,1\n2.5,1\n"),
    "Latin-1 in a head": ("a.csv:für x", "für x,y\n1.5,1\n2.5,1\n".encode("latin-1")),
    "Latin-1 far below": ("a.csv:s", b"s,y\n1.5,1\n" * 1 + b"2.5,\xfc\n"),
    "CR": ("a.csv", PLAIN.replace(b"\n", b"\r")),
    "CR LF": ("a.csv", PLAIN.replace(b"\n", b"\r\n")),
    "no end of the last line": ("a.csv", PLAIN[:-1]),
    "quotes": ("a.csv:sec, onds", '"id","sec, onds"\n"a","1.5"\n"b","2.5"\n'),
    "a line break in quotes": ("a.csv:seconds", 'id,seconds\n"a\nb",1.5\nc,2.5\n'),
    "a colon in the column": ("a.csv:request:time", "request:time,y\n1.5,1\n2.5,2\n"),
    "colons in the path": ("12:30/a.csv:seconds", "seconds,x\n1.5,1\n2.5,1\n"),
    "a colon in the only name": ("a:b.csv", PLAIN),
    "a drive": ("C:\\data\\a.csv:seconds", PLAIN),
    "braces, blanks, not ASCII": ("ä {b} [c]/d e.csv", PLAIN),
    "parentheses": ("times (1).csv:s (ms)", "s (ms),x\n1.5,1\n2.5,1\n"),
    "numbers in many forms": ("a.csv", "seconds\n+15e-1\n 2.5\n"),
}


@pytest.mark.parametrize(("value", "content"), READ.values(), ids=READ)
def test_what_is_certain_is_read(value, content):
    path = value
    while ":" in path and path not in ("a:b.csv", "C:\\data\\a.csv", "12:30/a.csv"):
        path = path.rpartition(":")[0]
    write(path, content)
    assert named_law("service", value) == Empirical([1.5, 2.5])


def has(line, cell):
    return f"line {line} of a.csv has {cell}, where s has to be a number above 0"


REFUSED = {
    "decimal commas, one column": ("s\n1,5\n2,25\n", "a.csv:s", "line 2 of a.csv has 2 cells"),
    "one of them": ("s\n1\n\n2,25\n", "a.csv:s", "line 4 of a.csv has 2 cells"),
    "decimal commas, two columns": ("i,s\n1,1,5\n", "a.csv:s", "and write 1.5 for 1,5"),
    "a long row": ("i;s\n1;5;\n2;3;4\n", "a.csv:s", "line 3 of a.csv has 3 cells and its head, "),
    "a short row": ("s,i\n1,2\n3\n", "a.csv:s", "line 3 of a.csv has 1 cells and its head, line 1"),
    "thousands": ("i;s\n1;1,500\n2;2,250\n", "a.csv:s", has(2, "'1,500'")),
    "thousands and points": ('s\n"1,234.5"\n2\n', "a.csv", has(2, "'1,234.5'")),
    "both decimals": ("i;s\n1;1,5\n2;2.5\n", "a.csv:s", has(2, "'1,5'")),
    "a dash": ("i,s\n" + "1,2\n" * 5 + "7,-\n8,9\n", "a.csv:s", has(7, "'-'")),
    "units": ("s\n1.5\n55.7ms\n3ms\n", "a.csv",
              has(3, "'55.7ms'") + ", as have 1 more of 3 lines: write it with a decimal point"),
    "missing": ("s\n1.5\nNaN\n", "a.csv", has(3, "'NaN'")),
    "empty": ("i,s\n1,\n", "a.csv:s", has(2, "nothing")),
    "an empty row": ("i,s\n1,2\n,\n", "a.csv:s", has(3, "nothing")),
    "quoted nothing": ('s\n1\n""\n', "a.csv", has(3, "nothing")),
    "zero": ("s\n1.5\n0\n", "a.csv", has(3, "'0'")),
    "negative": ('"s"\n"1\n"\n-2\n', "a.csv", has(4, "'-2'")),
    "decimal commas and zero": ("i;s\n1;1,5\n2;0,0\n", "a.csv:s", has(3, "'0,0'")),
    "infinite": ("s\n1\ninf\n", "a.csv", has(3, "'inf'")),
    "far out": ("s\n1\n1e200\n", "a.csv", "line 3 of a.csv has '1e200', out of range: choose"),
    "a date": ("s\n2024-01-01\n", "a.csv", has(2, "'2024-01-01'")),
    "a clock": ("s\n00:01:30\n", "a.csv", has(2, "'00:01:30'")),
    "true": ("s\nTrue\n", "a.csv", has(2, "'True'")),
    "an open quote": ('i,s\n1,2\n1,"2.5\n2,3\n', "a.csv:s", "from line 3 on a.csv is not CSV"),
    "a column that is not there": ("id,seconds\n1,2\n", "a.csv:second", "(did you mean seconds?)"),
    "no column": ("id,seconds\n1,2\n", "a.csv", "choose a column of a.csv, one of id, seconds"),
    "many columns": (",".join(f"c{i}" for i in range(99)), "a.csv", "c11 and 87 more."),
    "two of a name": ("s,s\n1,2\n", "a.csv:s", "a.csv has 2 columns s: rename all but one"),
    "nothing": ("", "a.csv", "a.csv is empty"),
    "empty lines alone": ("\n \n", "a.csv", "a.csv is empty"),
    "a head alone": ("s\n", "a.csv", "a.csv has a head and no line below it"),
    "no head": ("0.5\n1.5\n", "a.csv", "the head of a.csv is a number, 0.5: write a name above"),
    "no head, two columns": ("1,0.5\n2,1.5\n", "a.csv", "the head of a.csv is a number"),
    "a number in the head": ("i,0.5\n2,1.5\n", "a.csv:0.5", "the head of a.csv is a number, 0.5"),
    "commas alone": (",,\n,,\n", "a.csv", "a.csv is empty"),
    "a line for a spreadsheet": ("sep=;\ni;s\n1;2\n", "a.csv:s", "a.csv begins with sep=;, for"),
    "gzip, cut": (gzip.compress(PLAIN)[:-9], "a.csv.gz", "a.csv.gz is damaged or cut short"),
    "gzip, damaged": (gzip.compress(PLAIN)[:-6] + b"123456", "a.csv.gz", "damaged or cut short"),
    "bzip2, cut": (bz2.compress(PLAIN)[:-9], "a.csv.bz2", "damaged or cut short"),
    "bzip2, damaged": (b"BZh91AY&SY" + b"x" * 40, "a.csv.bz2", "can't be read: invalid data"),
    "xz, cut": (lzma.compress(PLAIN)[:-9], "a.csv.xz", "damaged or cut short"),
    "zip, cut": (zipped("a.csv")[:-9], "a.csv.zip", "damaged or cut short"),
    "zip of two": (zipped("a.csv", "b.csv"), "a.csv.zip", "a.csv.zip holds 2 files: unpack it"),
    "Excel": (zipped("[Content_Types].xml"), "a.xlsx", "is an Excel workbook, which is not read"),
    "Parquet": (b"PAR1\0\0PAR1", "a.parquet:s", "a.parquet is Parquet, which is not read: save it"),
    "Parquet by another name": (b"PAR1\0\0PAR1", "a.csv", "a.csv is Parquet, which is not read"),
    "Zstandard": (b"\x28\xb5\x2f\xfd\0", "a.csv.zst", "compressed by Zstandard, which is not read"),
    "JSON": ('{"s": [1.5]}', "a.json", "a.json is JSON, which is not read: save it as CSV"),
    "JSON by another name": ("[1, 2]", "a.csv", "a.csv is JSON, which is not read"),
    "UTF-16 without a mark": ("s\n1\n".encode("utf-16-le"), "a.csv", "a.csv is not plain text"),
    "half a letter of UTF-16": (b"\xff\xfes\0\n\0" + b"\0\xd8", "a.csv", "plain text in UTF-8"),
}  # fmt: skip


@pytest.mark.parametrize(("content", "value", "words"), REFUSED.values(), ids=REFUSED)
def test_what_is_not_certain_is_refused_by_its_line(content, value, words):
    write(value.partition(":")[0], content)
    assert words in refusal(value)


def test_a_file_that_is_no_file():
    os.makedirs("f.csv")
    write("seconds.csv", PLAIN)
    assert "f.csv is a folder: name a file in it" in refusal("f.csv:seconds")
    assert "there is no file second.csv in " in refusal("second.csv:x")
    assert "did you mean seconds.csv?" in refusal("second.csv")
    assert "there is no file A.TSV.GZ in " in refusal("A.TSV.GZ")
    assert "there is no file C:\\data\\t.csv in " in refusal("C:\\data\\t.csv:x")
    os.mkfifo("pipe.csv")
    assert "pipe.csv is not a regular file" in refusal("pipe.csv")
    os.symlink("loop.csv", "loop.csv")
    assert "there is no file loop.csv" in refusal("loop.csv")
    for path in ("a" * 300 + ".csv", "a\0.csv"):
        with pytest.raises(ParameterError, match="there is no file"):
            named_law("service", path)


def test_a_file_that_may_not_be_read(monkeypatch):
    def refused(*_):
        raise PermissionError(13, "Permission denied")

    write("a.csv", PLAIN)
    monkeypatch.setattr("builtins.open", refused)
    assert "a.csv can't be read: permission denied" in refusal("a.csv")


def test_a_file_in_the_home_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    write("a.csv", PLAIN)
    assert named_law("service", "~/a.csv").mean == 2
    assert "there is no file ~/b.csv" in refusal("~/b.csv")


def test_the_longest_file_that_is_there_is_meant():
    write("a.csv", "b.csv,s\n1,3\n")
    assert named_law("service", "a.csv:b.csv").mean == 1
    write("a.csv:b.csv", PLAIN)
    assert named_law("service", "a.csv:b.csv").mean == 2


def test_a_cap_and_an_absurd_value_are_read():
    times = [1 + i % 17 for i in range(940)]
    for last in ([30_000] * 60, [1e12]):
        write("a.csv", "\n".join(map(str, ["s", *times, *last])))
        assert named_law("service", "a.csv") == Empirical([*times, *last])


def test_a_long_file_is_read_whole_and_its_last_line_is_named():
    numbers = np.random.default_rng(3).lognormal(size=20_000)
    lines = ["id,seconds", *(f"{i},{x!r}" for i, x in enumerate(numbers.tolist()))]
    write("a.csv", "\n".join(lines))
    assert named_law("service", "a.csv:seconds") == Empirical(numbers)
    write("a.csv", "\n".join([*lines, "20000,-"]))
    assert "line 20002 of a.csv has '-'" in refusal("a.csv:seconds")


def test_the_same_sentence_before_any_work(monkeypatch, tmp_path):
    """From the check of a value, the command line, and the grid of a sweep; no kernel starts."""
    write("a.csv.gz", gzip.compress(PLAIN)[:-9])
    told = refusal("a.csv.gz")
    service = catalogue.find_notebook("which_d").parameters["service"]
    with pytest.raises(ParameterError) as caught:
        service.parse("a.csv.gz")
    assert str(caught.value) == told

    def started(*_, **__):
        raise AssertionError("work was begun")

    monkeypatch.setattr(jupyter, "execute", started)
    monkeypatch.setattr("supermarket.experiment.schedulers.local", started)
    write("grid.yaml", "service: [Exponential(), a.csv.gz]\n")
    for words in (["run", "which_d", "service=a.csv.gz"], ["sweep", "which_d", "grid.yaml"]):
        done = CliRunner().invoke(app, [*words, "--out", "out"])
        assert (done.exit_code, done.stderr.strip()) == (2, told)
        assert not (tmp_path / "out").exists()
    write("grid.yaml", "services: [[Exponential(), a.csv.gz]]\n")
    done = CliRunner().invoke(app, ["sweep", "disciplines", "grid.yaml", "--out", "out"])
    assert (done.exit_code, done.stderr.strip()) == (2, told.replace("service", "services[1]", 1))
