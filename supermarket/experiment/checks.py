"""The verdicts that earlier runs left in a folder, held to what is expected of them.

A claim is expected to hold, a negative control to be refused. What is known to come out otherwise
in a profile of the book stands in ``findings.yml`` beside the notebooks:

    book:
    - page: growing_diffusions
      claim: the claim, word for word
      outcome: does not hold
      why: one or two sentences for a reader.
"""

import json
from collections import Counter
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

import yaml

from supermarket.experiment import catalogue
from supermarket.experiment.verdicts import (
    CONTROL,
    FAILS,
    HOLDS,
    KEYS,
    KINDS,
    OUTCOMES,
    as_expected,
    is_verdict,
)
from supermarket.validation import ParameterError

Verdict = dict[str, Any]
DEFAULT = "book"  # the profile that is held to its findings, be there none


def check(out: Path) -> dict[str, Any]:
    """Return the verdicts in a folder of runs, of a sweep, or of the built book, and judge them.

    Returns
    -------
    dict
        "profile", of a built book, else None;
        "verdicts", a list of dicts with experiment, the keys of a verdict, why of a known finding,
        and of a sweep point, replica and values, those of its grid;
        "outcomes", how many claims have each, and "controls", how many negative controls were
        "refused" as they should be, and how many "not refused";
        "kinds", the same by kind and outcome;
        of a sweep, "failed" and "missing" points, and "errors", each with its count;
        "surprises", sentences on what differs from the findings of its profile, which the default
        one always has; elsewhere on each claim that does not hold and each control that holds;
        and "passed", whether there is no surprise and no point that failed or is missing.

    Raises
    ------
    ParameterError
        If there are no verdicts, a file is damaged or of an older version, or the verdicts are not
        those of the book that was built last.
    """
    errors: Counter[str] = Counter()
    missing, profile = 0, None
    if (out / "sweep.json").is_file():
        verdicts, errors, missing = _of_sweep(out)
    else:
        verdicts = _of_runs(out)
        profile = _profile(out)
    known = findings().get(profile, [] if profile == DEFAULT else None) if profile else None
    if known is None:
        surprises = [_plainly(verdict) for verdict in verdicts if _wrong(verdict)]
    else:
        surprises = compare(verdicts, known)
        whys = {(e["page"], e["claim"], e["outcome"]): e["why"] for e in known}
        verdicts = [v | {"why": whys[_place(v)]} if _place(v) in whys else v for v in verdicts]
    controls = [verdict for verdict in verdicts if verdict["kind"] == CONTROL]
    refused = sum(map(as_expected, controls))
    kinds = {kind: _outcomes(v for v in verdicts if v["kind"] == kind) for kind in KINDS}
    return {
        "profile": profile,
        "outcomes": _outcomes(verdict for verdict in verdicts if verdict["kind"] != CONTROL),
        "controls": {"refused": refused, "not refused": len(controls) - refused},
        "kinds": {kind: counts for kind, counts in kinds.items() if any(counts.values())},
        "failed": errors.total(),
        "missing": missing,
        "errors": [{"error": error, "count": count} for error, count in errors.most_common()],
        "surprises": surprises,
        "passed": not (surprises or errors or missing),
        "verdicts": verdicts,
    }


def findings() -> dict[str, list[dict[str, str]]]:
    """Return what is known to come out otherwise than expected, by profile.

    Raises
    ------
    ParameterError
        If an entry of ``findings.yml`` lacks something, or its outcome is none.
    """
    file = catalogue.folder() / "findings.yml"
    if not file.is_file():
        return {}
    try:
        listed = dict(yaml.safe_load(file.read_text(encoding="utf-8")) or {})
        listed = {profile: list(entries or []) for profile, entries in listed.items()}
    except (OSError, yaml.YAMLError, ValueError, TypeError, RecursionError):
        raise ParameterError(f"{file} must list findings below each profile, in YAML.") from None
    found: dict[str, list[dict[str, str]]] = {}
    for profile, entries in listed.items():
        found[profile] = entries
        for entry in found[profile]:
            given = entry if isinstance(entry, dict) else {}
            for key in ("page", "claim", "outcome", "why"):
                if not isinstance(given.get(key), str) or not given[key].strip():
                    raise ParameterError(f"{file}: {entry} has no {key}, which is a text.")
            if given["outcome"] not in OUTCOMES:
                raise ParameterError(
                    f"{file}: {given['outcome']} is no outcome: choose from {', '.join(OUTCOMES)}."
                )
    return found


def compare(verdicts: list[Verdict], known: list[dict[str, str]]) -> list[str]:
    """Return a sentence on each difference between a book's verdicts and its known findings.

    Parameters
    ----------
    verdicts : list of dict
        All of the book, each with its "experiment".
    known : list of dict
        With page, claim and outcome. A claim that stands on a page twice is listed for each time
        that it comes out so.
    """
    there = Counter(_place(v) for v in verdicts if not as_expected(v))
    listed = Counter((entry["page"], entry["claim"], entry["outcome"]) for entry in known)
    new, gone = there - listed, listed - there
    lost = {(page, claim): outcome for page, claim, outcome in gone.elements()}
    surprises = []
    for page, claim, outcome in new.elements():
        before = lost.pop((page, claim), None)
        surprises.append(
            f"{page}: {claim}: {outcome}, and findings.yml "
            + (f"says {before}: mend" if before else "does not list it: mend")
            + " the cause, or write the finding there with its reason."
        )
    for (page, claim), outcome in lost.items():
        still = any((v["experiment"], v["claim"]) == (page, claim) for v in verdicts)
        surprises.append(
            f"{page}: {claim}: listed in findings.yml as {outcome}, "
            + ("which it no longer is" if still else "and no longer on that page")
            + ": take it out there, and see that the page no longer speaks of it."
        )
    return surprises


def _place(verdict: Verdict) -> tuple[str, str, str]:
    return verdict["experiment"], verdict["claim"], verdict["outcome"]


def _wrong(verdict: Verdict) -> bool:
    """Tell whether a claim does not hold, or a control does: not whether a run was too short."""
    return verdict["outcome"] == (HOLDS if verdict["kind"] == CONTROL else FAILS)


def _plainly(verdict: Verdict) -> str:
    what = "a negative control that holds" if verdict["kind"] == CONTROL else FAILS
    return f"{verdict['experiment']}: {verdict['claim']}: {what}."


def _outcomes(verdicts: Any) -> dict[str, int]:
    counts = Counter(verdict["outcome"] for verdict in verdicts)
    return {outcome: counts[outcome] for outcome in OUTCOMES}


def _of_runs(out: Path) -> list[Verdict]:
    verdicts = []
    for file in sorted((out / "verdicts").glob("*.json")):
        try:
            listed = json.loads(file.read_text(encoding="utf-8"))
            found = [{"experiment": file.stem} | dict(verdict) for verdict in listed]
        except (OSError, ValueError, TypeError, RecursionError):
            raise ParameterError(f"{file} is damaged: run the experiment again.") from None
        if not all(verdict.keys() >= set(KEYS) for verdict in found):
            raise ParameterError(
                f"{file} is of another version of this package, whose verdicts have another form: "
                "run the experiment again."
            )
        if not all(map(is_verdict, found)):
            raise ParameterError(f"{file} is damaged: run the experiment again.")
        verdicts += found
    if not verdicts:
        raise ParameterError(
            f"{out} holds no verdicts of a run or sweep: name its --out folder, or build, once "
            "`make book` has succeeded."
        )
    return verdicts


def _profile(out: Path) -> str | None:
    """Return the profile of a built book, None if it is not one.

    Its ``profile.json`` lists the hash of each file of verdicts: one that was written since, as by
    a notebook executed by hand, is none of the book's.
    """
    try:
        built = json.loads((out / "profile.json").read_text(encoding="utf-8"))
        profile, hashes = str(built["profile"]), dict(built["verdicts"])
    except FileNotFoundError:
        return None
    except (OSError, ValueError, TypeError, KeyError, RecursionError):
        raise ParameterError(f"{out / 'profile.json'} is damaged: `make book` again.") from None
    there = {
        file.name: sha256(file.read_bytes()).hexdigest()
        for file in (out / "verdicts").glob("*.json")
    }
    if wrong := sorted(name for name, _ in there.items() ^ hashes.items()):
        raise ParameterError(
            f"{out / 'verdicts' / wrong[0]} is not as the book left it: `make book` puts it right."
        )
    return profile


def _of_sweep(out: Path) -> tuple[list[Verdict], Counter[str], int]:
    from supermarket.experiment import plans, results

    frame = results.read_sweep(out)
    points = frame.drop_duplicates(["point", "replica"])
    errors = Counter(points["error"].dropna())
    missing = plans.plan(out)["points"] - len(points)
    keys = ["experiment", "point", "replica", *(key for key in KEYS if key != "parameters")]
    rows = frame.loc[frame["claim"].notna(), keys].astype(object)
    verdicts = [_without_nan(row) for row in rows.to_dict("records")]
    swept = frame.loc[rows.index, list(plans.plan(out)["grid"])].to_dict("records")
    verdicts = [
        verdict | {"values": values} for verdict, values in zip(verdicts, swept, strict=True)
    ]
    return verdicts, errors, missing


def _without_nan(row: Mapping[str, Any]) -> Verdict:
    """Return a row in which None stands for what a verdict does not have."""
    return {key: None if value != value else value for key, value in row.items()}
