"""Packed weights on a device: read bit by bit, in place, or ignored with right results."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from packed_samples import PREFIX, copied, packed_without_a_device, put, works_of
from support import QUICK, as_input

import vkrt
from vkrt import packer
from vkrt.cli import main as cli
from vkrt.description import Description
from vkrt.packed import format as vkpack

# On further drivers, when one has run them all, less is enough: see tools/test.
PROGRAMS = ["batch2", "conv1d", "conv_mix", "elementwise", "lstm_cell", "mlp", "mlp-fp16",
            "superres_small", "toy"]


def outputs(path, device, **options):
    """Outputs of a run on random inputs, always the same for a program, and the memory report."""
    generator = np.random.default_rng(11)
    with vkrt.load(path, device, **options) as program:
        inputs = [as_input(generator.standard_normal(i.sizes), i)
                  for i in program.metadata().inputs]
        program.run(*inputs)
        results = program.run(*inputs)  # what is streamed has been loaded anew
        assert program.memory.measured_peak == program.memory.planned_peak
        return results, program.memory


def assert_same(results, expected):
    assert len(results) == len(expected)
    for result, wanted in zip(results, expected):
        np.testing.assert_array_equal(result, wanted)


def assert_ignored(model, device, words):
    """A load says why it does without, and gives the right results."""
    expected, plain = outputs(model, device, packed="off")
    results, memory = outputs(model, device)
    assert_same(results, expected)
    assert memory.weights == plain.weights and not plain.notes
    note, = memory.notes
    assert "is not used" in note and words in note


@pytest.mark.driver
@pytest.mark.parametrize("storage", ["texel", "buffer"])
@pytest.mark.parametrize("name", PROGRAMS[:2] if QUICK else PROGRAMS)
def test_everything_is_read_in_place(name, storage, device, tmp_path):
    """No device memory for weights, no staging, and the bits of a load that packs."""
    model = copied(name, tmp_path)
    expected, _ = outputs(model, device, storage=storage, weights="direct")
    done = vkrt.pack(model, device=device, storage=storage)
    for weights in ("auto", "map"):
        results, memory = outputs(model, device, storage=storage, weights=weights)
        assert_same(results, expected)
        assert {record.placement for record in memory.placements} == {"map"}
        assert memory.weights == memory.staging == memory.direct == 0
    if done.output is None:
        assert os.listdir(tmp_path) == [model.name] and not memory.notes
    else:
        assert memory.notes == [f"{done.weights} weights are read from {done.output}"]
        assert packer.check(model) == done.output


@pytest.mark.driver
@pytest.mark.parametrize("name", ["conv_mix"] if QUICK else [
    "conv_mix", "mlp", "mlp-fp16", "elementwise", "superres_small"])
@pytest.mark.parametrize("options", [
    {"weights": "copy"}, {"weights": "copy", "chunk": 256}, {"weights": "direct"},
    {"weights": "stream"}, {"weights": "stream", "stream_lookahead": 0}, {"order": "eager"}])
def test_other_ways_read_packed_bytes(name, options, device, tmp_path):
    model = copied(name, tmp_path)
    expected, _ = outputs(model, device, weights="direct")
    done = vkrt.pack(model, device=device)
    results, memory = outputs(model, device, **options)
    assert_same(results, expected)
    assert any(str(done.output) in note for note in memory.notes) == (done.output is not None)
    saved = [record for record in memory.placements if record.name.endswith("(saved packed)")]
    assert len(saved) == done.weights
    # Two weights of superres_small are alike, and elementwise has one alone.
    if options.get("weights") == "stream" and name not in ("superres_small", "elementwise"):
        assert any(record.placement == "stream" for record in saved)


@pytest.mark.driver
def test_images_are_as_ever(model, device, tmp_path):
    """Images do not come from the file of packed weights, and have none to put there."""
    expected, plain = outputs(model, device, storage="texture3d")
    vkrt.pack(model, device=device, storage="texel")
    results, memory = outputs(model, device, storage="texture3d")
    assert_same(results, expected)
    assert memory.staging > 0 and len(memory.notes) == 1
    images, left = ([record.name for record in report.placements if record.placement == "staged"]
                    for report in (plain, memory))
    assert images and images == left
    other = tmp_path / "images.vkpack"
    done = vkrt.pack(model, other, device=device, storage="texture3d")
    if done.output is not None:  # vectors at places where the device cannot read them
        assert_same(outputs(model, device, storage="texture3d", packed=other)[0], expected)


@pytest.mark.driver
def test_for_other_storages(model, device):
    """Layouts that two storages have in common serve both; what has no use here is ignored."""
    done = vkrt.pack(model, device=device, storage="texel")
    expected, _ = outputs(model, device, storage="buffer", packed="off")
    results, memory = outputs(model, device, storage="buffer")
    assert_same(results, expected)
    assert memory.weights == 0
    output, header = packed_without_a_device(model)
    assert str(output) == done.output
    put(output, header, storage="shelf",
        entries=tuple(replace(e, key=e.key[::-1]) for e in header.entries))
    assert_ignored(model, device, "made for storage shelf")


@pytest.mark.driver
def test_damage_is_ignored(model, device):
    """The header is tested byte by byte in test_packed_file.py; here that a load goes on."""
    done = vkrt.pack(model, device=device)
    output, good = Path(done.output), Path(done.output).read_bytes()
    header, start = vkpack.read_header(memoryview(good))
    for position in (0, 8, 12, 16, PREFIX, start - 1):
        data = bytearray(good)
        data[position] ^= 0x10
        output.write_bytes(data)
        assert_ignored(model, device, "")
    output.write_bytes(good[:-4096])
    assert_ignored(model, device, "cut off")
    output.write_bytes(good)
    put(output, header, vkrt="0.0.0")
    assert_ignored(model, device, "made by vkrt 0.0.0")
    put(output, header, layout=0)
    assert_ignored(model, device, "layouts 0")
    put(output, header, entries=(replace(header.entries[0], nbytes=1 << 40), *header.entries[1:]))
    assert_ignored(model, device, "of a payload")
    output.write_bytes(good)
    assert outputs(model, device)[1].weights == 0


@pytest.mark.driver
def test_a_weight_of_wrong_size_is_packed(model, device):
    done = vkrt.pack(model, device=device)
    output = Path(done.output)
    expected, _ = outputs(model, device, packed="off")
    header, _ = vkpack.read_header(memoryview(output.read_bytes()))
    first, *others = header.entries
    put(output, header, entries=(replace(first, nbytes=first.nbytes - 16), *others))
    results, memory = outputs(model, device)
    assert_same(results, expected)
    assert memory.weights > 0
    assert memory.notes[0].startswith(f"{done.weights - 1} weights are read from")


@pytest.mark.driver
def test_a_changed_program_of_the_same_size(model, device):
    """Its results are its own, not those of the weights that were packed before."""
    description = Description(model)
    work, = works_of(description)
    description.close()
    vkrt.pack(model, device=device)
    before, _ = outputs(model, device)
    data = bytearray(model.read_bytes())
    for record in work.prepacks:
        start = record.constant.offset
        weights = np.frombuffer(data, "<f4", record.constant.nbytes // 4, start) * 2
        data[start:start + record.constant.nbytes] = weights.tobytes()
    model.write_bytes(data)
    os.utime(model, ns=(0, 77))
    assert_ignored(model, device, "has changed")
    results, _ = outputs(model, device)
    assert not np.array_equal(results[0], before[0])


@pytest.mark.driver
def test_packed_again_while_in_use(model, device):
    """What is mapped stays; methods loaded later, and loads, do not take what they do not know."""
    vkrt.pack(model, device=device)
    description = Description(model)
    options = vkrt.plan.options.LoadOptions()
    in_use = description.packed(options)
    vkrt.pack(model, device=device)
    work, sources = in_use.apply(works_of(description)[0], [description.source])
    assert len(sources) == 1
    assert "is another file" in work.notes[0] and "is not used" in work.notes[0]
    description.close()
    with vkrt.load(model, device, weights="stream") as program:
        zeros = [np.zeros(i.sizes, i.dtype) for i in program.metadata().inputs]
        expected = program.run(*zeros)
        vkrt.pack(model, device=device)
        assert_same(program.run(*zeros), expected)


@pytest.mark.driver
def test_predicted_is_measured(model, device, capsys):
    """`vkrt info` sees the file too."""
    vkrt.pack(model, device=device)
    assert cli.main(["info", str(model), "--json"]) == 0
    info = json.loads(capsys.readouterr().out)["methods"]["forward"]
    _, memory = outputs(model, device)
    assert info["peak"] == memory.measured_peak and info["weights"] == 0
    assert info["notes"] == memory.notes
    assert cli.main(["info", str(model), "--json", "--packed", "off"]) == 0
    info = json.loads(capsys.readouterr().out)["methods"]["forward"]
    assert info["weights"] > 0 and not info["notes"]
    assert "note: " in memory.table()
