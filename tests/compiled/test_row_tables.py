"""Compiled programs that read rows of tables: the same bits; damaged tables are refused."""

from __future__ import annotations

import numpy as np
import pytest
from compiled_files import rewritten
from program_samples import changed
from support import MODELS, same_bits

import vkrt
from vkrt.errors import FormatError
from vkrt.lowering import host_calls


def test_the_same_bits(storage, compiled_of, device):
    out = compiled_of("experts", storage=storage, weights="stream")
    with (vkrt.load(out, device) as program,
          vkrt.load(MODELS / "experts.pte", device, storage=storage, weights="copy") as whole):
        for number in (0, 77, 129):
            ids = np.array([number], np.int64)
            same_bits(program.run(ids), whole.run(ids))
        assert program.memory.rows > 0
        assert program.memory.planned_peak == program.memory.measured_peak


def test_every_shape_reads_the_table_in_the_compiled_file(monkeypatch, device, compiled_of):
    monkeypatch.setattr(host_calls, "is_worth_reading", lambda *_: True)
    counts = (1, 3, 4)
    out = compiled_of("llama", device=device, weights="stream",
                      shapes=[[(1, count), (1,)] for count in counts])
    with vkrt.load(out, device) as program, vkrt.load(MODELS / "llama.pte", device) as whole:
        for position, count in enumerate(counts):
            call = np.arange(5, 5 + count)[None], np.array([position])
            np.testing.assert_allclose(program.run(*call)[0], whole.run(*call)[0], rtol=1e-4,
                                       atol=1e-5)
        assert program.memory.rows > 0


TABLE = "targets.0.methods.0.largest.executable.execution.submissions.{}.host.table"


@pytest.mark.parametrize("change, words", [
    (lambda table: table._replace(source=1), "a part of one of 1 files"),
    (lambda table: table._replace(source=-1), "a part of one of 1 files"),
    (lambda table: table._replace(offset=1 << 40), "a part of a file"),
    (lambda table: table._replace(offset=-1), "a part of a file"),
    (lambda table: table._replace(row_bytes=-4), "a part of a file"),
    (lambda table: table._replace(row_bytes=table.row_bytes - 4), "as many bytes of rows"),
    (lambda table: table._replace(rows=0), "rows within a file"),
    (lambda table: table._replace(rows=1 << 30), "rows within a file"),
    (lambda table: table._replace(rows=1 << 62), "rows within a file"),
])
def test_damaged_tables(change, words, compiled_of, device):
    out = compiled_of("experts", weights="stream")

    def damaged(compiled):
        execution = compiled.targets[0].methods[0].largest.executable.execution
        number = next(i for i, submission in enumerate(execution.submissions)
                      if submission.host is not None and submission.host.table is not None)
        return changed(compiled, TABLE.format(number),
                       change(execution.submissions[number].host.table))

    rewritten(out, damaged)
    with pytest.raises(FormatError, match=words):
        vkrt.load(out, device)
