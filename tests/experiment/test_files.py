"""Files that are there whole, and locks, on disks that have them or not."""

import errno
import fcntl
import os
import subprocess
import sys

import pytest

from supermarket.experiment.files import OutsideError, alone

HOLD = """
import sys, time
from pathlib import Path
import fcntl
from supermarket.experiment.files import alone
number = int(sys.argv[2])
if number:
    def refused(file, operation):
        raise OSError(number, "no locks")
    fcntl.flock = refused
with alone(Path(sys.argv[1]), "busy"):
    print("held", flush=True)
    time.sleep(60)
"""


@pytest.mark.parametrize("refusal", [0, errno.ENOSYS, errno.ENOLCK, errno.EOPNOTSUPP])
def test_one_at_a_time_on_any_disk_and_the_dead_hold_nothing(refusal, tmp_path, monkeypatch):
    lock = tmp_path / "lock"
    if refusal:  # as a disk without locks does

        def refused(file, operation):
            raise OSError(refusal, os.strerror(refusal))

        monkeypatch.setattr(fcntl, "flock", refused)
    command = [sys.executable, "-c", HOLD, str(lock), str(refusal)]
    holder = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(OutsideError, match=r"^busy$"), alone(lock, "busy"):
            pass
    finally:
        holder.kill()
        holder.communicate()
    for _ in range(2):
        with alone(lock, "busy"):
            pass
    assert {file.name for file in tmp_path.iterdir()} <= {"lock", "lock.held"}
