"""The table of architectures: what tools/measure/architectures.py makes of its records."""

import argparse
import json
import sys
from pathlib import Path

import numpy as np
import pytest
from support import MODELS

TOOLS = Path(__file__).parent.parent / "tools"
sys.path.insert(0, str(TOOLS / "measure"))
import architectures  # noqa: E402

RAN = {"error": 3e-7, "own": 2e-7, "hosts": {}, "steps": 5, "planned": 100, "measured": 100,
       "s": 0.5}


class NoExporter:
    def export(self, name):
        return {"name": name, "error": f"nothing exports {name}"}


@pytest.mark.parametrize("changes, right", [
    ({}, True), ({"error": 1.1e-5}, False), ({"error": 1.1e-5, "own": 6e-6}, True),
    ({"error": 1.1e-5, "own": float("nan")}, False), ({"error": float("inf")}, False),
    ({"measured": 101}, False)])
def test_what_is_right(changes, right):
    assert architectures.is_right({**RAN, **changes}) == right


def test_table():
    records = {"a": {"cold": RAN, "warm": {**RAN, "s": 0.1}},
               "b": {"cold": {**RAN, "error": 1.0, "hosts": {"aten::sort.values": 2}}},
               "c": {"cold": {"refused": "method 'forward' needs 1 thing that vkrt does not have: "
                                         "aten.no x2"}},
               "d": {"export": "ValueError: no"}}
    rows = {name: architectures.row(name, record) for name, record in records.items()}
    lines = architectures.table(rows)
    assert lines[0] == ("Of 4 networks 3 are exported, 2 of these run, and 1 (33 %) are right; "
                        "1 have no step on the host.")
    assert lines[4:] == [
        "| a | right | 3.0e-07 | 2.0e-07 | none | 0.000 | 500 | 100 |",
        "| b | WRONG | 1.0e+00 | 2.0e-07 | 2 x sort.values | 0.000 | 500 |  |",
        "| c | refused: aten.no x2 |  |  |  |  |  |  |",
        "| d | not exported: ValueError: no |  |  |  |  |  |  |"]
    assert architectures.rows_in("\n".join(lines)) == rows


def test_rows_of_other_networks_stay(tmp_path, monkeypatch):
    monkeypatch.setattr(architectures, "README", tmp_path / "README.md")
    architectures.README.write_text(f"before\n{architectures.BEGIN}{architectures.END}behind\n")
    for name, error in (("b", 3e-7), ("a", 3e-7), ("b", 1.0)):
        record = {"cold": {**RAN, "error": error}}
        architectures.write({name: architectures.row(name, record)})
    head, *lines, tail = architectures.README.read_text().splitlines()
    assert (head, tail) == ("before", "behind")
    assert lines[1].startswith("Of 2 networks 2 are exported, 2 of these run, and 1 (50 %)")
    assert [line[:11] for line in lines[5:7]] == ["| a | right", "| b | WRONG"]


@pytest.mark.driver
def test_a_program_is_run_and_not_run_again(tmp_path):
    options = argparse.Namespace(folder=tmp_path, again=False, anew=False)
    (tmp_path / "mlp.pte").write_bytes((MODELS / "mlp.pte").read_bytes())
    with np.load(MODELS / "mlp.npz") as data:
        np.savez(tmp_path / "mlp.npz", own=1e-7, **data)
    record = architectures.examine("mlp", NoExporter(), options)
    assert architectures.is_right(record["cold"])
    assert architectures.is_right(record["warm"])
    (tmp_path / "mlp.npz").unlink()
    assert architectures.examine("mlp", NoExporter(), options) == record
    assert architectures.examine("other", NoExporter(), options) == {
        "export": "nothing exports other"}
    assert json.loads((tmp_path / "other.json").read_text("utf-8"))["export"]
