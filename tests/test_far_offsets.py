"""Files of more than 4 GiB: offsets of weights that 32 bits do not hold, on every way in."""

import struct

import pytest
from support import close_to, find_model, reference_of

import vkrt
from vkrt.plan.options import STRATEGIES

# Behind 4 GiB, and behind the largest signed number of 32 bits of pages
FAR = 5 << 30
# Where a program's header says at which offset its segments begin
BASE = 24


@pytest.fixture(scope="module")
def far_program(tmp_path_factory):
    """A program whose segments lie behind a hole, which takes no room on the disk."""
    data = bytearray(find_model("mlp.pte").read_bytes())
    (base,) = struct.unpack_from("<Q", data, BASE)
    struct.pack_into("<Q", data, BASE, FAR)
    path = tmp_path_factory.mktemp("far") / "mlp.pte"
    with path.open("wb") as file:
        file.write(data[:base])
        file.seek(FAR)
        file.write(data[base:])
    yield path
    path.unlink()


def run(path, device, **options):
    inputs, expected = reference_of("mlp")
    with vkrt.load(path, device, **options) as program:
        close_to(program.run(*inputs), expected)
        assert program.memory.measured_peak == program.memory.planned_peak


@pytest.mark.parametrize("options", [
    {}, {"weights": "copy"}, {"weights": "stream"},
    *({"weights": "direct", "prefetch": strategy} for strategy in STRATEGIES)], ids=str)
def test_weights_behind_4_gib(options, far_program, device):
    run(far_program, device, **options)


def test_a_compiled_program_of_it(far_program, device, tmp_path):
    path = tmp_path / "mlp.vkx"
    vkrt.compile(far_program, path, device=device)
    run(path, device)
