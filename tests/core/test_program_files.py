"""Files of programs that are read by the core alone, by a host in C, under sanitizers."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest
from core_build import generated, needs_build, sanitized, sanitized_objects
from program_samples import program_of, samples, sharing

import vkrt
from vkrt.compiled.file import HEAD
from vkrt.compiler.program_files import COMPILED_MAGIC
from vkrt.executable import flat, rows
from vkrt.executable.program import Compiled, CompiledShape

CORE = Path(vkrt.__file__).parent / "core"
PARTS = ("check", "check_border", "check_commands", "check_shared", "check_weights", "dtypes",
         "file", "flat", "program", "strided_copy")
# Of a file before its records, more than any of these programs has, and damaged files for each
DATA_BYTES = 1 << 20
FILES = int(os.environ.get("VKRT_DAMAGED_FILES", "1000"))
# The samples are planned by the tests, in so many parts: collecting tests takes no planning.
PARTS_OF_SAMPLES = 4

pytestmark = needs_build


@pytest.fixture(scope="module")
def reader(tmp_path_factory) -> Path:
    """The host."""
    target = sanitized(tmp_path_factory.mktemp("reader") / "damage")
    objects = sanitized_objects("address,undefined", list(map(generated, PARTS))).values()
    tables = re.search(r"TABLES = (\d+)", (CORE / "records.pxd").read_text())[1]
    return sanitized(target, Path(__file__).with_name("damage.c"), *objects, options=(
        "-Wall", "-Wextra", "-Werror", f"-DTABLES={tables}"))


def write_program(path: Path, program: Compiled) -> None:
    """A file as a compiled program has it, with its method at two shapes."""
    target, = program.targets
    method, = target.methods
    plan = method.largest
    shape = CompiledShape(tuple(() if value is None else value.sizes for value in plan.inputs),
                          plan.outputs, plan.executable.execution, plan.executable.figures, (), ())
    method = method._replace(others=(shape,))
    modules = tuple(m._replace(offset=HEAD.size, nbytes=4, sha256="0") for m in program.modules)
    program = program._replace(modules=modules,
                               targets=(target._replace(methods=(method,)),) * 2)
    records = rows.to_bytes(program)
    start = HEAD.size + DATA_BYTES
    path.write_bytes(HEAD.pack(COMPILED_MAGIC, flat.PROGRAM_FILE_VERSION, 0, start, len(records))
                     + bytes(DATA_BYTES) + records)


@pytest.mark.parametrize("part", range(PARTS_OF_SAMPLES))
def test_damaged_files_of_samples(part, reader, tmp_path):
    for number in range(0, len(samples()), 3)[part::PARTS_OF_SAMPLES]:
        check_damaged_files(program_of(samples()[number]), number, reader, tmp_path)


def test_damaged_files_with_shared_weights(reader, tmp_path):
    check_damaged_files(sharing(), -1, reader, tmp_path)


def check_damaged_files(program: Compiled, number: int, reader: Path, folder: Path) -> None:
    """The host reads files with changed words, chosen by a number: each is refused, or as good."""
    path = folder / "good.vkx"
    write_program(path, program)
    flat.File(path.read_bytes()[HEAD.size + DATA_BYTES:], 1, HEAD.size + DATA_BYTES).read()
    said = subprocess.run([reader, path, str(FILES), str(number), folder], capture_output=True,
                          text=True)
    assert said.returncode == 0, said.stderr
    counts = dict(map(int, line.split()) for line in said.stdout.splitlines())
    # What is taken has another number that nothing goes by, such as one of a report.
    assert set(counts) == {0, 5} and counts[5] > counts[0] > 0, counts
