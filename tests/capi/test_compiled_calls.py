"""Compiled programs through libvkrt, on the core alone: as through Python, to the bit and byte."""

from __future__ import annotations

import ctypes
import os
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from compiled_programs import CODE_OF, Failure, call, library, live, opened, refused, tensor_of
from core_runner import runs
from hostile_device import environment_of
from support import inputs_of, odd_bools, run_python, same_bits

import vkrt
from vkrt.capi import saving

HERE = Path(__file__).parent
# States, halves, 8 and 4 bits, shapes of every kind; no dynamic shapes and nothing on the host
NAMES = ("mlp", "elementwise", "quantized_mlp", "kept_attention", "unet_small", "mlp-fp16", "kept",
         "conv_mix", "quantized_pictures", "lstm_cell", "superres_small", "llama_static")

pytestmark = pytest.mark.driver


def check_runs(out):
    """Results are those of Python, and the peak is the planned one; the memory's figures."""
    inputs, expected = runs(out)
    with opened(out) as program:
        for outputs in expected:
            same_bits(program.run(*inputs), outputs)
        memory = program.memory()
    assert memory["planned_peak"] == memory["measured_peak"]
    return memory


@pytest.mark.parametrize("name", NAMES)
def test_the_same_bits_and_bytes(name, storage, compiled_of):
    out = compiled_of(name, storage=storage)
    memory = check_runs(out)
    with vkrt.load(out) as through_python:
        report = through_python.memory
        assert memory == {name: getattr(report, name) for name in memory} | {
            "measured_peak": memory["measured_peak"]}
        assert report.planned_peak == memory["planned_peak"]


def test_bools_of_other_bytes_than_0_and_1(compiled_of):
    out = compiled_of("masks")
    inputs, expected = runs(out)
    with opened(out) as program:
        same_bits(program.run(*map(odd_bools, inputs)), expected[0])


def test_rows_that_a_run_chooses(storage, compiled_of):
    """Of the experts of a layer those are read that a token needs."""
    check_runs(compiled_of("experts", storage=storage, weights="stream"))


@pytest.mark.parametrize("options", [{"device": "generic"}, {"weights": "copy"},
                                     {"weights": "direct"}, {"order": "eager"}], ids=str)
def test_weights_that_come_in_other_ways(options, compiled_of):
    """Through a staging buffer, or written by the host."""
    check_runs(compiled_of("unet_small", **options))


@pytest.mark.parametrize("options", [{"weights": "stream"}, {"memory_budget": "smallest"},
                                     {"weights": "stream", "stream_lookahead": 0}], ids=str)
@pytest.mark.parametrize("name", ["unet_small", "kept_attention", "llama_static", "branches"])
def test_streamed_weights(name, options, compiled_of):
    """They come anew in every run, through a pool of their own."""
    check_runs(compiled_of(name, **options))


def test_a_file_that_is_not_there():
    with refused("OSError", "No such file or directory: /nothing.vkx"), opened("/nothing.vkx"):
        pass


def test_what_a_program_says_of_itself(compiled_of):
    """Names, dtypes and sizes, dynamic ones too, as Python's face has them."""
    dynamic = compiled_of("conv-dyn", shapes=[[(1, 3, 30, 40)], [(1, 3, 16, 20)]])
    for file in (dynamic, compiled_of("llama_static")):
        with opened(file) as program, vkrt.load(file) as expected:
            names = expected.method_names
            assert list(program.methods()) == list(names)
            for name in names:
                for what in ("input", "output"):
                    wanted = getattr(expected.metadata(name), f"{what}s")
                    assert [info[:4] for info in program.infos(what, name)] == [
                        (info.name, info.dtype, info.sizes, info.dynamic_dims) for info in wanted]


def test_lines_of_a_load(compiled_of):
    """Each level has those of the one before, and Python's phases are the same."""
    out = compiled_of("unet_small", weights="copy")
    heard: list[tuple[int, str]] = []
    hear = ctypes.CFUNCTYPE(None, ctypes.c_int, ctypes.c_char_p, ctypes.c_void_p)(
        lambda level, line, data: heard.append((level, line.decode())))
    lines = {}
    try:
        for level in (1, 2):
            heard.clear()
            call("vkrt_set_log", level, hear, None)
            with opened(out) as program:
                lines[level], memory = list(heard), program.memory()
    finally:
        call("vkrt_set_log", 0, None, None)
    phases = [line for number, line in lines[2] if number == 2]
    assert [entry for entry in lines[2] if entry[0] == 1] == lines[1] != []
    assert phases == [f"{name}: {nbytes:,} bytes on the device" for name, nbytes in (
        ("graph built", 0), ("after prepack", memory["weights"]),
        ("before execute", memory["planned_peak"]))]


def test_further_shapes(compiled_of):
    """In any order, over one set of weights, in the memory of the largest."""
    chance = np.random.default_rng(2)
    shapes = [(1, 3, 30, 40), (1, 3, 16, 20)]
    inputs = [chance.standard_normal(sizes).astype("float32") for sizes in shapes]
    out = compiled_of("conv-dyn", shapes=[[sizes] for sizes in shapes])
    with vkrt.load(out) as program:
        expected = [program.run(x) for x in inputs]
    with opened(out) as program:
        for number in (0, 1, 1, 0):
            same_bits(program.run(inputs[number]), expected[number])
        with refused("InputError", r"it is not compiled for inputs of sizes \[1,3,15,20\]; it is "
                                   r"for \[1,3,30,40\], \[1,3,16,20\]"):
            program.run(np.zeros((1, 3, 15, 20), "float32"))
        memory = program.memory()
        assert memory["planned_peak"] == memory["measured_peak"]


@pytest.mark.parametrize("wrong, words", [
    (np.zeros((3, 30), "float64"), "expected float32[3,30], got float64[3,30]"),
    (np.zeros((3, 31), "float32"), "got float32[3,31]; dimension 1 has to be 30, not 31"),
    (np.zeros(90, "float32"), "got float32[90]")])
def test_inputs_that_do_not_fit(wrong, words, compiled_of):
    out = compiled_of("mlp")
    with opened(out) as program, vkrt.load(out) as expected:
        for face, kind in ((program, Failure), (expected, vkrt.InputError)):
            with pytest.raises(kind) as caught:
                face.run(wrong)
            assert words in str(caught.value)
        with pytest.raises(Failure, match=r"1 inputs \('input_0' float32\[3,30\]\), got 2"):
            program.run(wrong, wrong)
        with refused("CapacityError", "output 0 has 120 bytes, its memory 7"):
            program.run(np.zeros((3, 30), "float32"), room=7)


def test_integers_that_do_not_fit(compiled_of):
    """In 32 bits, or into a table; neither runs anything."""
    out = compiled_of("llama_static")
    inputs, (expected, _) = runs(out)
    assert inputs[0].dtype == np.int64
    with opened(out) as program:
        for value, words in ((1 << 40, "input 0: it holds 1099511627776; integers have 32 bits"),
                             (1 << 20, "input 0: expected numbers from ")):
            wrong = inputs[0].copy()
            wrong.flat[-1] = value
            with refused("InputError", words):
                program.run(wrong, *inputs[1:])
        same_bits(program.run(*inputs), expected)


@pytest.mark.parametrize("name", ["int16", "bfloat16"])
def test_dtypes_that_the_device_does_not_have(name, compiled_of):
    check_runs(compiled_of(f"cases/{name}"))


def test_states(compiled_of):
    """Several of a method, in any order; their saved bytes are those that Python writes."""
    out = compiled_of("buffers")
    inputs, expected = runs(out, 3)
    with opened(out) as program, vkrt.load(out) as through_python:
        method = through_python.load_method("forward")

        def saved_by_python():
            memory = bytearray(saving.saved_bytes(method))
            saving.save(method, method.state, memoryview(memory))
            return bytes(memory)

        initial = program.save()
        assert initial == saved_by_python()
        other = program.new_state()
        kept = program.memory()["state"]
        for step in range(3):
            same_bits(program.run(*inputs), expected[step])
            through_python.run(*inputs)
            assert program.save() == saved_by_python() != initial
        for step in range(2):
            same_bits(program.run(*inputs, state=other), expected[step])
        middle = program.save(other)
        saving.load(method, method.state, middle)
        same_bits(through_python.run(*inputs), expected[2])
        program.restore(middle)
        same_bits(program.run(*inputs), expected[2])
        same_bits(program.run(*inputs, state=other), expected[2])
        call("vkrt_state_reset", program.handle, "forward", other)
        same_bits(program.run(*inputs, state=other), expected[0])
        for wrong in (b"", b"nonsense" * 9, middle[:-1], middle.replace(b"float32", b"float16")):
            with pytest.raises(Failure):
                program.restore(wrong)
        call("vkrt_state_close", other)
        assert program.memory()["state"] < kept
        with refused("ClosedError"):
            program.run(*inputs, state=other)


def test_states_of_a_device_with_hidden_memory(compiled_of, monkeypatch):
    """Saved and loaded through the device."""
    for name, value in environment_of("amd").items():
        monkeypatch.setenv(name, value)
    out = compiled_of("buffers", device="generic")
    inputs, expected = runs(out, 2)
    with opened(out) as program:
        same_bits(program.run(*inputs), expected[0])
        saved = program.save()
        same_bits(program.run(*inputs), expected[1])
        program.restore(saved)
        same_bits(program.run(*inputs), expected[1])


def test_activations_in_the_host_s_memory_are_in_no_peak(tmp_path):
    """Where they wait for a budget, on a device with memory of its own."""
    run_python("""
        import sys
        from pathlib import Path
        import vkrt
        from support import MODELS
        from test_compiled_calls import check_runs
        path, out = MODELS / "attention-dyn.pte", Path(sys.argv[1])
        with vkrt.load(path, weights="copy") as program:
            sizes = [info.sizes for info in program.metadata().inputs]
            budget = int(program.memory.planned_peak * 0.92)
        vkrt.compile(path, out, shapes=[sizes], memory_budget=budget)
        with vkrt.load(out) as program:
            assert program.memory.spilled > 0
        assert check_runs(out)["measured_peak"] <= budget
        """, str(tmp_path / "attention.vkx"), PYTHONPATH=os.pathsep.join(sys.path),
        **environment_of("nvidia"))


@pytest.mark.parametrize("options", [
    {}, {"weights": "copy"}, {"weights": "direct", "storage": "texture3d"},
    {"weights": "copy", "order": "eager"}, {"device": "generic"}], ids=str)
@pytest.mark.parametrize("methods", [("decode", "encode"), ("encode", "decode")], ids=str)
def test_several_methods(methods, options, compiled_of):
    """Each is loaded when first run; the peak is of what is loaded, with shared weights once."""
    out = compiled_of("coder", **options)
    with opened(out) as program, vkrt.load(out) as through_python:
        assert program.memory()["weights"] == 0
        for name in methods:
            inputs = inputs_of(through_python, name)
            same_bits(program.run(*inputs, method=name),
                      list(map(np.asarray, through_python.run(*inputs, method=name))))
            memory = program.memory()
            assert memory["planned_peak"] == memory["measured_peak"]
            report = through_python.memory
            assert memory == {name: getattr(report, name) for name in memory}
        with refused("InputError", "no method 'backward' in .*; it has "):
            program.save(method="backward")


def test_methods_that_several_threads_load(compiled_of):
    """At once, with weights that both read."""
    out = compiled_of("coder", weights="copy")
    with vkrt.load(out) as through_python:
        inputs = {name: inputs_of(through_python, name) for name in through_python.method_names}
        expected = {name: list(map(np.asarray, through_python.run(*values, method=name)))
                    for name, values in inputs.items()}
        weights = through_python.memory.weights
    for _ in range(5):
        with opened(out) as program, ThreadPoolExecutor() as pool:
            begun = {name: pool.submit(program.run, *values, method=name)
                     for name, values in inputs.items()}
            found = {name: run.result() for name, run in begun.items()}
            memory = program.memory()
        assert memory["weights"] == weights
        assert memory["planned_peak"] == memory["measured_peak"]
        for name, outputs in expected.items():
            same_bits(found[name], outputs)


def test_methods_that_only_return_numbers(compiled_of):
    out = compiled_of("llama", shapes=[[(1, 1), (1,)]])
    with opened(out) as program, vkrt.load(out) as through_python:
        assert "get_vocab_size" in through_python.constants
        for name, values in through_python.constants.items():
            assert [x.item() for x in program.run(method=name)] == list(values)
        with pytest.raises(Failure, match="keeps nothing"):
            program.save(method="get_bos_id")


def test_damaged_files(compiled_of, tmp_path):
    """Are refused by name, and leave nothing."""
    whole = compiled_of("mlp").read_bytes()
    before = live()
    for damaged, words in ((whole[:-8], "is it cut off"), (whole[:20], "expected 32 bytes or more"),
                           (whole[:-64] + bytes(64), ""), (whole[:8] + b"\7" + whole[9:],
                                                           "expected format version")):
        path = tmp_path / "damaged.vkx"
        path.write_bytes(damaged)
        with refused("FormatError", rf"damaged\.vkx.*{words}"), opened(path):
            pass
    assert live() == before


def test_cancelling(compiled_of):
    """A run ends early, or just before it is cancelled; the next one is right."""
    out = compiled_of("unet_small")
    inputs, (expected, _) = runs(out)
    with opened(out) as program:
        for _ in range(10):
            codes = []

            def run(codes=codes):
                try:
                    same_bits(program.run(*inputs), expected)
                except Failure as error:
                    codes.append(error.code)

            thread = threading.Thread(target=run)
            thread.start()
            while thread.is_alive():
                call("vkrt_cancel", program.handle, "forward")
            thread.join()
            assert set(codes) <= {CODE_OF["CancelledError"]}
            same_bits(program.run(*inputs), expected)


def test_a_wrong_count_of_outputs(compiled_of):
    out = compiled_of("mlp")
    x = np.zeros((3, 30), "float32")
    with opened(out) as program:
        given = tensor_of(x)
        assert library().vkrt_run(program.handle, None, None, ctypes.byref(given),
                                  ctypes.c_size_t(1), None, ctypes.c_size_t(0)) == 3
        assert b"expected 1 outputs ('output_0' float32[3,10]), got 0" \
            in library().vkrt_last_error_text()
