"""Constants in `.ptd` files: every way of the weights, and what may be wrong with the files."""

import random
from contextlib import closing

import numpy as np
import pytest
from data_samples import named_data, split, w
from support import MODELS, need_model, need_one_memory, reference_of

import vkrt
from vkrt.compiler.description import Description


def run(path, data, device, name, **options):
    """Runs the program; returns its memory report, after comparing the result."""
    inputs, outputs = reference_of(name)
    with vkrt.load(path, device, data_path=data, **options) as program:
        result = program.run(*inputs)[0]
        memory = program.memory
    np.testing.assert_allclose(result, outputs[0], rtol=1e-4, atol=1e-5)
    assert memory.measured_peak == memory.planned_peak
    return memory


@pytest.mark.parametrize("files", [1, 3])
def test_storages(storage, files, device, tmp_path):
    path, data = split("conv_mix", tmp_path, files)
    run(path, data if files > 1 else data[0], device, "conv_mix", storage=storage)


@pytest.mark.parametrize("options", [
    {"weights": "auto"}, {"weights": "map"}, {"weights": "direct"}, {"weights": "copy"},
    {"weights": "stream"}, {"memory_budget": "smallest"}, {"order": "eager", "weights": "copy"},
    {"prefetch": "none"}], ids=lambda options: "-".join(map(str, options.values())))
def test_ways(options, device, tmp_path, exact_sizes):
    """What is read from data files takes the same ways, and as many bytes, as in a program."""
    if options.get("weights") == "map":
        need_one_memory(device)
    path, data = split("mlp", tmp_path, 2, 256)
    memory = run(path, data, device, "mlp", **options)
    whole = run(MODELS / "mlp.pte", None, device, "mlp", **options)
    # Where offsets in the program do not suit the device, those in the files do.
    assert memory.mapped >= whole.mapped
    # Weights come in the order of the files, which decides how a pool is divided.
    if memory.mapped == whole.mapped and not whole.pool:
        assert (memory.weights, memory.planned_peak) == (whole.weights, whole.planned_peak)


def test_from_bytes(device, tmp_path):
    path, data = split("mlp", tmp_path, 2)
    run(path.read_bytes(), [item.read_bytes() for item in data], device, "mlp")
    run(path, bytearray(split("mlp", tmp_path)[1][0].read_bytes()), device, "mlp")


def test_exported(device):
    """A program whose constants the exporter put into a file."""
    path = need_model("mlp-ext.pte")
    (x,), (y,) = reference_of(path)
    data = sorted(path.parent.glob("vulkan_constants_*.ptd"))
    for weights in ("auto", "map", "direct", "copy", "stream"):
        with vkrt.load(path, device, data_path=data, weights=weights) as program:
            np.testing.assert_allclose(program.run(x)[0], y, rtol=1e-4, atol=1e-5)
    assert vkrt.verify(path, data) == 8


def test_a_file_that_changes(load, tmp_path):
    """Streamed weights are read in every run: a file cut meanwhile is an error, no crash."""
    path, (data,) = split("mlp", tmp_path)
    program = load(path, data_path=data, weights="stream")
    data.write_bytes(data.read_bytes()[:1000])
    with pytest.raises(vkrt.FormatError, match=data.name):
        program.run(*reference_of("mlp")[0])


def refused(path, data, words):
    """Makes sure that there is no graph of a program and its data."""
    with closing(Description(path, data)) as description, \
            pytest.raises(vkrt.FormatError, match=words):
        description.graph("forward")


def test_missing_data(tmp_path):
    path, (first, second) = split("mlp", tmp_path, 2)
    refused(path, None, "[0-9a-f]{60}.*pass that as data_path")
    refused(path, first, f"[0-9a-f]{{60}}.*{first.name}")
    with pytest.raises(OSError, match="nothing.ptd"):
        Description(path, tmp_path / "nothing.ptd")


def test_files_that_differ(tmp_path):
    path, (data,) = split("mlp", tmp_path)
    key, value = min(named_data("mlp").items())
    same, other = tmp_path / "same.ptd", tmp_path / "other.ptd"
    same.write_bytes(w.external([(key, value)]))
    other.write_bytes(w.external([(key, bytes(len(value)))]))
    Description(path, [data, same]).close()
    with pytest.raises(vkrt.FormatError, match=f"other.ptd.*{key}.*{data.name}"):
        Description(path, [data, other])
    with pytest.raises(vkrt.FormatError, match="other.ptd.*the program"):
        Description(MODELS / "mlp.pte", [other])


def test_data_that_is_too_short(tmp_path):
    path, _ = split("mlp", tmp_path)
    data = tmp_path / "short.ptd"
    data.write_bytes(w.external([(k, v[:-4]) for k, v in named_data("mlp").items()]))
    refused(path, data, "VkBytes.length")


def test_verify(tmp_path):
    path, data = split("mlp", tmp_path, 2)
    count = len(named_data("mlp"))
    assert vkrt.verify(path, data) == count == vkrt.verify(MODELS / "mlp.pte")
    damaged = bytearray(data[1].read_bytes())
    damaged[-1] ^= 1
    data[1].write_bytes(damaged)
    with pytest.raises(vkrt.FormatError, match=f"1 of {count} .* in {data[1]}"):
        vkrt.verify(path, data)


def test_damaged_data(tmp_path):
    """Whatever bytes a data file has: it is read, or a FormatError says why not."""
    path, (data,) = split("mlp", tmp_path)
    original = data.read_bytes()
    rng, refusals = random.Random(4), 0
    for _ in range(400):
        damaged = bytearray(original)
        for _ in range(rng.choice([1, 1, 3])):
            damaged[rng.randrange(1200)] = rng.choice([0, 1, 4, 0x7f, 0x80, 0xff])
        try:
            with closing(Description(path, bytes(damaged))) as description:
                description.graph("forward")
        except vkrt.FormatError:
            refusals += 1
    assert refusals > 40


def external_mean(tmp_path, layout=(6, [1, 4], [0, 1]), nbytes=16):
    """A program that adds a program-level constant of a data file to its input, by a kernel."""
    extra = w.Table({1: "net.offset", 2: w.i8(1)})
    path, data = tmp_path / "external.pte", tmp_path / "external.ptd"
    path.write_bytes(w.program([w.plan(
        values=[w.tensor([1, 4], _9=extra), w.vk_int(1),
                w.union(7, w.Table({0: w.i64s(1)})), w.union(3, w.Table({0: w.u8(1)})),
                w.union(1, w.Table()), w.tensor([1, 1])],
        outputs=[5], operators=[("aten::mean", "out")],
        instructions=[w.union(1, w.Table({0: w.i32(0), 1: w.i32s(0, 2, 3, 4, 5, 5)}))])]))
    data.write_bytes(w.external([("net.offset", np.arange(4, dtype="f4").tobytes()[:nbytes])],
                                layouts={"net.offset": layout} if layout else None))
    return path, data


@pytest.mark.parametrize("layout", [None, (6, [1, 4], [0, 1])])
def test_constants_of_the_program_itself(layout, load, tmp_path):
    path, data = external_mean(tmp_path, layout)
    assert load(path, data_path=data).run()[0].item() == 1.5


@pytest.mark.parametrize("changes", [
    {"layout": (6, [4, 1], [0, 1])}, {"layout": (3, [1, 4], [0, 1])},
    {"layout": None, "nbytes": 12}], ids=str)
def test_constants_of_the_program_that_do_not_fit(changes, tmp_path):
    path, data = external_mean(tmp_path, **changes)
    refused(path, data, f"net.offset: expected 16 bytes.*{data}")
    refused(path, None, "'net.offset'.*data_path")


@pytest.mark.driver
def test_command(output_of, error_of, tmp_path):
    path, data = split("mlp", tmp_path, 2)
    files = [word for item in data for word in ("--data", item)]
    assert "constants have the bytes" in output_of("info", path, "--verify", *files)
    output_of("run", path, *files)
    output_of("compile", path, *files)
    assert "data_path" in error_of(1, "run", path)
