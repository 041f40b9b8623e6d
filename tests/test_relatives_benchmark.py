"""The benchmark of memory and networks runs; nothing here is timed."""

import pytest

from benchmarks import relatives


@pytest.mark.book
def test_the_benchmark_runs(capsys):
    relatives.main(["--quick"])
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 7
    assert "three stations with feedback" in lines[4]
