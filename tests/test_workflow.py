"""The published workflow: no action that can change unseen, no job that can hang for hours."""

import re
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[1]
TEXT = "".join(file.read_text() for file in sorted((ROOT / ".github/workflows").glob("*.yml")))


def test_actions_are_pinned_to_a_commit_and_say_which_version_that_is():
    used = re.findall(r"uses: (.*)", TEXT)
    assert len(used) > 5
    for action in used:
        assert re.fullmatch(r"[\w/-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", action), action


def test_every_job_has_a_limit_of_time():
    jobs = yaml.safe_load(TEXT)["jobs"]
    assert {name: job.get("timeout-minutes", 0) > 0 for name, job in jobs.items()} == dict.fromkeys(
        jobs, True
    )
