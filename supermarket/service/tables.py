"""A column of service times from a file that somebody else wrote: read rightly, or refused.

What a cell is has to be certain. So every line has as many cells as the head, a cell is a number
or the file is refused by that cell's line, and a comma in a cell is a decimal comma only where it
can be nothing else.
"""

import bz2
import csv
import gzip
import io
import lzma
import os
import re
import zipfile
import zlib
from array import array
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from itertools import chain
from typing import IO, NoReturn

import numpy as np

from supermarket.service.law import LONGEST, SHORTEST
from supermarket.validation import ParameterError, bounds, is_number, nearest, said

_TABLE = re.compile(
    r"\.(csv|tsv|tab|txt|dat|gz|bz2|xz|zip|zst|tar|parquet|feather|arrow|jsonl?|ndjson|xlsx?|ods)$",
    re.IGNORECASE,
)
_BINARY = {b"PAR1": "Parquet", b"ARROW1": "Arrow", b"\x28\xb5\x2f\xfd": "compressed by Zstandard"}
_COMMA = re.compile(r"\s*\+?\d*,\d+(e[+-]?\d+)?\s*", re.IGNORECASE)
_THOUSANDS = re.compile(r"\s*\+?[1-9]\d{0,2}(,\d{3})+\s*")
_MOST_NAMES = 12


def place(value: str) -> tuple[str, str] | None:
    """Return the file and the column that a text such as ``sizes.csv:seconds`` names, or None.

    A path may hold colons itself, and so may the name of a column: the file is the longest one
    that is there.
    """
    ends = [i for i, letter in enumerate(value) if letter == ":"] + [len(value)]
    there = [end for end in reversed(ends) if os.path.exists(os.path.expanduser(value[:end]))]
    meant = [end for end in ends if _TABLE.search(value[:end])]
    end = next(iter(there + meant), None)
    return None if end is None else (value[:end], value[end + 1 :].strip())


def column(name: str, value: str, path: str, asked: str) -> np.ndarray:
    """Return the numbers of one column of a table with a head, shape (m,), all positive.

    Cells are separated by commas, semicolons, tabs, vertical bars or blanks, as the head is; the
    text may be in UTF-8, UTF-16 with its mark, or Latin-1, and packed by gzip, bzip2, xz or zip.

    Parameters
    ----------
    name, value : str
        Of the parameter, for the sentence of an error.
    path, asked : str
        The file, and the name of the column; empty for the only one.

    Raises
    ------
    ParameterError
        If the file can't be read, or something in it is not certain; the sentence names the line.
    """
    table = _Table(f"{name} = {said(value)}", path, asked)
    try:
        try:
            return table.numbers("utf-8-sig")
        except UnicodeDecodeError:
            return table.numbers("latin-1")
    except (EOFError, zlib.error, lzma.LZMAError, zipfile.BadZipFile, gzip.BadGzipFile):
        table.refuse(f"{path} is damaged or cut short: copy it again")
    except (UnicodeError, RuntimeError, NotImplementedError):  # the last two: a locked archive
        table.refuse(f"{path} can't be unpacked: give plain text in UTF-8")
    except OSError as error:  # bzip2 says of damage no more than that it is one
        table.refuse(f"{path} can't be read: {(error.strerror or str(error)).lower()}")


class _Table:
    def __init__(self, told: str, path: str, asked: str) -> None:
        self._told, self.path, self._asked = told, path, asked

    def refuse(self, why: str) -> NoReturn:
        raise ParameterError(f"{self._told}: {why}.") from None

    def numbers(self, encoding: str) -> np.ndarray:
        with ExitStack() as stack:
            file = self._opened(stack)
            start = file.peek(4096)[:4096]
            if start.startswith((b"\xff\xfe", b"\xfe\xff")):
                encoding = "utf-16"
            elif binary := next((_BINARY[m] for m in _BINARY if start.startswith(m)), None):
                self.refuse(f"{self.path} is {binary}, which is not read: save it as CSV")
            elif b"\0" in start:
                self.refuse(f"{self.path} is not plain text: save it as CSV in UTF-8")
            elif start.lstrip()[:1] in (b"{", b"["):
                self.refuse(f"{self.path} is JSON, which is not read: save it as CSV")
            return self._column(stack.enter_context(io.TextIOWrapper(file, encoding, newline="")))

    def _opened(self, stack: ExitStack) -> io.BufferedReader:
        """Return the file, unpacked by what it is and not by what it is called."""
        path = os.path.expanduser(self.path)
        if os.path.isdir(path):
            self.refuse(f"{self.path} is a folder: name a file in it")
        if not os.path.exists(path):
            folder, file = os.path.split(path)
            beside = os.listdir(folder or ".") if os.path.isdir(folder or ".") else []
            at = "" if os.path.isabs(path) else f" in {os.getcwd()}"
            self.refuse(f"there is no file {said(self.path, str)}{at}{nearest(file, beside)}")
        if not os.path.isfile(path):
            self.refuse(f"{self.path} is not a regular file: save it as one")
        raw = stack.enter_context(open(path, "rb"))  # noqa: SIM115
        start = raw.peek(8)
        packed: IO[bytes] = raw
        if start.startswith(b"\x1f\x8b"):
            packed = gzip.GzipFile(fileobj=raw)
        elif start.startswith(b"BZh"):
            packed = bz2.BZ2File(raw)
        elif start.startswith(b"\xfd7zXZ"):
            packed = lzma.LZMAFile(raw)  # noqa: SIM115
        elif start.startswith(b"PK\x03\x04"):
            archive = stack.enter_context(zipfile.ZipFile(raw))
            if "[Content_Types].xml" in archive.namelist():
                self.refuse(f"{self.path} is an Excel workbook, which is not read: save it as CSV")
            if len(archive.namelist()) != 1:
                self.refuse(f"{self.path} holds {len(archive.namelist())} files: unpack it")
            packed = archive.open(archive.namelist()[0])
        return io.BufferedReader(packed)

    def _column(self, lines: Iterable[str]) -> np.ndarray:
        lines = iter(lines)
        before = list(_until_two(lines))
        separator = _separator([line for line in before if line.strip()], self.path)
        rows = self._rows(chain(before, lines), separator)
        top, head = next(((line, row) for line, row in rows if any(row)), (0, []))
        if not head:
            self.refuse(f"{self.path} is empty: write a name and, below it, the times")
        while not head[-1]:
            head.pop()
        width, at = len(head), self._place(head)
        values, odd, pointed = array("d"), [], False
        for line, row in rows:
            if len(row) != width:
                if width > 1 and row == [""]:
                    continue
                if len(row) < width or any(cell.strip() for cell in row[width:]):
                    self._refuse_width(line, len(row), top, width, separator)
            cell = row[at]
            pointed = pointed or "." in cell
            try:
                number = float(cell)
            except ValueError:
                number = np.nan
            if not SHORTEST <= number <= LONGEST:
                odd.append((len(values), line, cell))
            values.append(number)
        if not values:
            self.refuse(f"{self.path} has a head and no line below it: write the times there")
        commas = [_COMMA.fullmatch(cell) and not _THOUSANDS.fullmatch(cell) for *_, cell in odd]
        if any(commas) and not pointed and all(_COMMA.fullmatch(cell) for *_, cell in odd):
            for i, _, cell in odd:
                values[i] = float(cell.replace(",", "."))
            odd = [told for told in odd if not SHORTEST <= values[told[0]] <= LONGEST]
        if odd:
            self._refuse_cell(head[at], len(values), len(odd), *odd[0][1:])
        return np.array(values)

    def _rows(self, lines: Iterable[str], separator: str) -> Iterator[tuple[int, list[str]]]:
        """Yield the number of the first line of each row that is not empty, and its cells."""
        reader = csv.reader(lines, delimiter=separator, skipinitialspace=True, strict=True)
        line = 1
        try:
            for row in reader:
                if row:
                    yield line, row
                line = reader.line_num + 1
        except csv.Error as error:
            self.refuse(f"from line {line} on {self.path} is not CSV ({error}): close every quote")

    def _place(self, head: list[str]) -> int:
        """Return which column is asked for."""
        names = [cell.strip() for cell in head]
        asked = self._asked or (names[0] if len(names) == 1 else "")
        if names[0].startswith("sep="):
            self.refuse(f"{self.path} begins with {names[0]}, for a spreadsheet: delete that line")
        if all(map(is_number, names)) or (asked in names and is_number(asked)):
            self.refuse(
                f"the head of {self.path} is a number, {said(asked or names[0], str)}: write a "
                f"name above the times"
            )
        if names.count(asked) > 1:
            self.refuse(f"{self.path} has {names.count(asked)} columns {asked}: rename all but one")
        if asked not in names or not asked:
            known = [said(each, str) for each in names if each]
            more = f" and {len(known) - _MOST_NAMES} more" if len(known) > _MOST_NAMES else ""
            self.refuse(
                f"choose a column of {self.path}, one of {', '.join(known[:_MOST_NAMES])}{more}"
                f"{nearest(asked, known)}"
            )
        return names.index(asked)

    def _refuse_width(self, line: int, cells: int, top: int, width: int, separator: str) -> None:
        what = "complete that line or delete it"
        if cells > width:
            what = "name every column in the head"
            if separator == ",":
                what += ", and write 1.5 for 1,5"
        self.refuse(
            f"line {line} of {self.path} has {cells} cells and its head, line {top}, has {width}: "
            f"{what}"
        )

    def _refuse_cell(self, head: str, lines: int, odd: int, line: int, cell: str) -> None:
        more = f", as have {odd - 1} more of {lines} lines" if odd > 1 else ""
        head = said(head.strip(), str)
        where = f"line {line} of {self.path} has {said(cell) if cell.strip() else 'nothing'}"
        if is_number(cell) and 0 < float(cell) < np.inf:
            allowed = bounds(head, SHORTEST, LONGEST)
            self.refuse(f"{where}, out of range: choose a unit with {allowed}")
        self.refuse(
            f"{where}, where {head} has to be a number above 0{more}: write it with a "
            f"decimal point alone, no unit or comma, or delete such lines"
        )


def _until_two(lines: Iterable[str]) -> Iterator[str]:
    """Yield lines up to the second that is not empty."""
    seen = 0
    for line in lines:
        yield line
        seen += bool(line.strip())
        if seen == 2:
            return


def _separator(lines: list[str], path: str) -> str:
    """Return what separates the cells: what parts the head and the first line alike, if any."""
    several = []
    for separator in "\t;|,":
        rows = csv.reader(lines, delimiter=separator, skipinitialspace=True)
        widths = [max((i + 1 for i, cell in enumerate(row) if cell), default=0) for row in rows]
        if widths and widths[0] > 1:
            several.append((len(set(widths)) == 1, widths[0], separator))
    if several:
        return max(several, key=lambda one: one[:2])[-1]
    words = [len(line.split()) for line in lines]
    if len(words) == 2 and words[0] == words[1] > 1:
        return " "
    return "\t" if re.search(r"\.(tsv|tab)\b", path, re.IGNORECASE) else ","
