"""Calls by habit: the program itself is called, inputs have names, and what does not fit is refused
with the call that would."""

import json
import re
import sys
from dataclasses import replace

import numpy as np
import pytest
from support import MODELS, graph_of_file, run_python, same_bits

import vkrt
from vkrt.compiler.description import Description
from vkrt.graph import names

NAMED, MLP = MODELS / "named.pte", MODELS / "mlp.pte"
INPUTS, OUTPUTS = ["rows", "mask", "shift"], ["scores", "sums"]


@pytest.fixture(scope="module")
def arrays():
    with np.load(NAMED.with_suffix(".npz")) as archive:
        return dict(archive)


@pytest.fixture(scope="module")
def values(arrays):
    return dict(zip(INPUTS, (arrays["in0"], arrays["in1"], arrays["in2"])))


@pytest.fixture
def program(device):
    with vkrt.load(NAMED, device) as opened:
        yield opened


# Names


def test_names_of_a_file():
    """Those of inputs are in a constant method, those of outputs in the tree of the results."""
    graph = graph_of_file(NAMED)
    assert (list(graph.input_names), list(graph.output_names)) == (INPUTS, OUTPUTS)
    graph = graph_of_file("lstm_cell")
    assert graph.input_names == ("input_0", "input_1", "input_2")
    # A dictionary among other results
    assert "sum" in graph_of_file("numbers").output_names


def leaf():
    return {"type": None, "context": None, "children_spec": []}


def tree(kind, keys, *children):
    return {"type": f"builtins.{kind}", "context": json.dumps(keys), "children_spec": children}


def spec_of(args, keywords):
    return json.dumps([1, tree("tuple", None, tree("tuple", None, *args),
                               tree("dict", list(keywords), *keywords.values()))])


@pytest.mark.parametrize(("spec", "expected"), [
    (spec_of([leaf(), leaf()], {"shift": leaf()}), ("input_0", "input_1", "shift")),
    (spec_of([tree("dict", ["x", "y"], leaf(), leaf())], {"shift": leaf()}), ("x", "y", "shift")),
    (spec_of([leaf()], {"pair": tree("list", None, leaf(), leaf())}),
     ("input_0", "pair_0", "pair_1")),
    # No names at all, names that are equal or unprintable, another number of leaves, no tree
    (spec_of([leaf(), leaf(), leaf()], {}), ()),
    (spec_of([tree("dict", ["x"], leaf()), leaf()], {"x": leaf()}), ()),
    (spec_of([leaf(), leaf()], {"a\nb": leaf()}), ()),
    (spec_of([leaf()], {"shift": leaf()}), ()),
    (json.dumps([1, {"type": "builtins.tuple"}]), ()),
    (json.dumps([1, [leaf()]]), ()), ("{", ()), ("", ()), (None, ()),
    ("[" * 100_000, ()),
], ids=range(13))
def test_names_in_a_tree(spec, expected):
    plan = replace(Description(MODELS / "lstm_cell.pte").program.plan("forward"), input_spec=spec)
    program = replace(Description(NAMED).program, plans=(plan,))
    assert names.names_of(program, plan)[0] == (expected or ("input_0", "input_1", "input_2"))


@pytest.mark.usefixtures("any_age")
def test_names_are_kept_with_a_plan(device, tmp_path):
    seen = []
    for _ in range(2):
        with vkrt.load(NAMED, device, plan_cache=tmp_path) as opened:
            metadata = opened.metadata()
            seen.append(tuple([info.name for info in infos]
                              for infos in (metadata.inputs, metadata.outputs)))
    assert seen == [(INPUTS, OUTPUTS)] * 2 and list(tmp_path.glob("*.vkplan"))


# Calls


def test_every_way_to_call(program, values, arrays):
    expected = program.run(*values.values())
    np.testing.assert_allclose(expected[0], arrays["out0"], rtol=1e-5, atol=1e-5)
    swapped = dict(reversed(values.items()))
    method = program.load_method("forward")
    for outputs in (program(*values.values()), program.run(values), program.run(swapped),
                    program(**swapped), program.run(values["rows"], shift=values["shift"],
                                                    mask=values["mask"]),
                    program.run({"rows": values["rows"]}, mask=values["mask"],
                                shift=values["shift"]),
                    method.execute(values), program.run_async(**swapped).result(),
                    program.run_async(values).result()):
        same_bits(outputs, expected)
    assert program.profile(values, repeat=1).steps


def test_inputs_of_one_value_may_be_left_out(load):
    opened = load("numbers")
    infos = opened.metadata().inputs
    fixed = [info for info in infos if info.fixed]
    assert fixed and len(fixed) < len(infos)
    expected = opened.run(*(info.example() for info in infos))
    some = {info.name: info.example() for info in infos if not info.fixed}
    same_bits(opened.run(some), expected)


@pytest.mark.parametrize(("call", "message"), [
    (lambda p, v: p(v["rows"], mask=v["mask"]), "'shift' is missing"),
    (lambda p, v: p(v["rows"], rows=v["rows"], mask=v["mask"], shift=v["shift"]),
     "'rows' is given twice"),
    (lambda p, v: p.run({**v, "shape": 1}), "'shape' is none of them"),
    (lambda p, v: p.run([*v.values()]), r"got 1; pass them as run(*inputs)"),
    (lambda p, v: p.load_method("forward").execute(v["rows"]), "expected a list of inputs, got "
     "ndarray; pass [x]"),
    (lambda p, v: p([v["rows"]], v["mask"], v["shift"]),
     "input 0 'rows': expected one array, got a list of 1; pass each array by itself: "),
    (lambda p, v: p(v["rows"].tolist(), v["mask"], v["shift"]),
     "input 0 'rows': expected an array, got a list; pass numpy.asarray(x, 'float32')"),
    (lambda p, v: p(v["rows"].astype(float), v["mask"], v["shift"]),
     "expected float32[2,4], got float64[2,4]; pass numpy.asarray(x, 'float32')"),
    (lambda p, v: p(**v, outputs="jax"), "outputs='jax': expected 'numpy' or 'torch'"),
])
def test_what_does_not_fit_says_what_would(program, values, call, message):
    with pytest.raises(vkrt.InputError, match=re.escape(message)):
        call(program, values)
    same_bits(program(np.asarray(values["rows"].tolist(), "float32"), values["mask"],
                      values["shift"]), program(**values))


# PyTorch, or what stands for it where it is not installed


STAND_IN = """
    import sys, types
    import numpy as np
    try:
        import torch
    except ImportError:
        class Tensor:
            def __init__(self, array): self.array = array
            def __dlpack__(self, **words): return self.array.__dlpack__(**words)
            def __dlpack_device__(self): return self.array.__dlpack_device__()
            def detach(self): return self
            def data_ptr(self): return self.array.ctypes.data
            def numpy(self): return self.array
            @property
            def dtype(self): return self.array.dtype
        torch = types.ModuleType("torch")
        torch.from_dlpack = lambda array: Tensor(np.from_dlpack(array))
        torch.from_numpy = Tensor
        sys.modules["torch"] = torch
"""


@pytest.mark.driver
def test_tensors_of_torch_without_a_copy():
    """They go in as they are, and come out over the memory that the run has written."""
    lines = run_python(STAND_IN + """
    import vkrt
    from vkrt.method import method
    with np.load(sys.argv[1].replace(".pte", ".npz")) as archive:
        arrays = [archive[f"in{i}"] for i in range(3)]
    results, written = [], []
    read_output = method.read_output
    def noted(compute, index, result):
        written.append(result.ctypes.data)
        read_output(compute, index, result)
    with vkrt.load(sys.argv[1]) as program:
        expected = program(*arrays)
        method.read_output = noted
        outputs = program(*map(torch.from_numpy, arrays), outputs="torch")
        print([output.data_ptr() for output in outputs] == written)
        print([output.numpy().tobytes() == other.tobytes()
               for output, other in zip(outputs, expected)])
        try:
            program(torch.from_numpy(arrays[0].astype(np.float64)), *arrays[1:])
        except vkrt.InputError as error:
            print(error)
    """, str(NAMED)).splitlines()
    assert lines[:2] == ["True", "[True, True]"]
    assert lines[2].endswith("got float64[2,4]; pass x.to(torch.float32)")


def test_without_torch(program, values, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(vkrt.InputError, match="needs PyTorch.*pip install torch"):
        program(**values, outputs="torch")


# The command line and C


@pytest.mark.driver
@pytest.mark.parametrize("keys", [
    ["rows", "mask", "shift"], ["shift", "rows", "mask"], ["in2", "in0", "in1"],
    ["arr_0", "arr_1", "arr_2"], ["in0", "in1", "in2", "out0", "exact_out1", "sums"]])
def test_keys_of_an_archive(keys, values, arrays, tmp_path, output_of):
    """By name, or by number, in whatever order the archive has them; outputs have their names."""
    places = {**dict(zip(INPUTS, range(3))), **{f"{start}{i}": i for i in range(3)
                                                for start in ("in", "arr_")}}
    np.savez(tmp_path / "x.npz", **{
        key: values[INPUTS[places[key]]] if key in places else np.zeros(3) for key in keys})
    target = tmp_path / "y.npz"
    output_of("run", NAMED, "--input", tmp_path / "x.npz", "--output", target)
    with np.load(target) as result:
        assert result.files == OUTPUTS
        np.testing.assert_allclose(result["scores"], arrays["out0"], rtol=1e-5, atol=1e-5)


@pytest.mark.driver
@pytest.mark.parametrize(("keys", "message"), [
    (["rows", "musk", "shift"], "keys rows, musk, shift: expected names of the inputs 'rows' "),
    (["in0", "in1", "in3"], "keys in0, in1, in3"), (["in0", "arr_1", "in2"], "expected names"),
    (["rows", "mask"], "'shift' is missing"), (["in0", "in1"], "expected 3 inputs"),
    (["in0", "in1", "in2", "rows"], "'rows' is given twice"),
])
def test_other_keys_are_refused(keys, message, values, tmp_path, error_of):
    np.savez(tmp_path / "x.npz", **dict.fromkeys(keys, values["mask"]))
    assert message in error_of(2, "run", NAMED, "--input", tmp_path / "x.npz")


@pytest.mark.driver
def test_info_names_them(output_of):
    lines = output_of("info", NAMED).splitlines()
    assert [line.split()[1] for line in lines if line.startswith(("  input", "  output"))] \
        == [f"{name}:" for name in (*INPUTS, *OUTPUTS)]


@pytest.mark.driver
def test_names_in_c():
    """`vkrt_input_get` and `vkrt_output_get` have the same names, behind the struct's size."""
    assert run_python("""
        import ctypes, sys
        from vkrt.capi import config
        library = ctypes.CDLL(str(config.folder() / config.LIBRARY))
        opened = ctypes.c_void_p()
        assert library.vkrt_load(sys.argv[1].encode(), None, ctypes.byref(opened)) == 0
        nbytes = 8 + 128 + 8 + 16 * 8 + 8 + 8
        for get, count in ((library.vkrt_input_get, 3), (library.vkrt_output_get, 2)):
            for index in range(count):
                info = ctypes.create_string_buffer(nbytes.to_bytes(8, "little"), nbytes)
                assert get(opened, None, ctypes.c_size_t(index), info) == 0
                print(ctypes.string_at(ctypes.addressof(info) + 8).decode())
        assert library.vkrt_close(opened) == 0
        """, str(NAMED)).split() == [*INPUTS, *OUTPUTS]
