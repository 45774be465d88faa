"""The `vkrt` command: output, JSON, exit codes, no tracebacks for mistakes."""

import io
import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest
from pte import pte_writer as w
from support import MODELS, need_one_memory

import vkrt
from vkrt.cli import main as cli
from vkrt.program.program import Program

pytestmark = pytest.mark.driver
MLP = str(MODELS / "mlp.pte")
UPSCALER = str(MODELS / "superres_small.pte")


def test_devices(output_of, json_of):
    assert "Vulkan" in output_of("devices")
    assert json_of("devices")[0]["heaps"]


def test_info(output_of, json_of):
    out = output_of("info", MLP)
    for words in ("method forward", "float32[3,30]", "aten.linear.default", "predicted peak"):
        assert words in out
    data = json_of("info", MLP)["methods"]["forward"]
    assert data["peak"] >= data["weights"] + data["activations"] > 0
    # Equal kinds of layers share one.
    assert 0 < data["pipelines"] < data["dispatches"]
    assert "compile_ms" not in data
    compiled = json_of("info", MLP, "--compile")["methods"]["forward"]
    assert compiled["pipelines"] == data["pipelines"]
    assert compiled["compile_cpu_ms"] > 0


@pytest.mark.parametrize("storage", ["texel", "texture3d"])
def test_info_predicts_what_a_load_takes(json_of, storage):
    arguments = (MODELS / "conv_mix.pte", "--storage", storage)
    predicted = json_of("info", *arguments)["methods"]["forward"]["peak"]
    assert json_of("run", *arguments)["memory"]["measured_peak"] == predicted


def test_info_names_the_smallest_budget(output_of, json_of, error_of):
    """What it says is what a load takes, and one byte less is refused with the same number. Without
    a number nothing is done in strips, which may take less and read more."""
    arguments = (MODELS / "conv_mix.pte", "--weights", "stream")
    data = json_of("info", *arguments, "--memory-budget")["methods"]["forward"]
    smallest = data["smallest_budget"]
    assert data["peak"] >= smallest and data["streamed"] > 0
    memory = json_of("run", *arguments, "--memory-budget", smallest)["memory"]
    assert memory["measured_peak"] == smallest and memory["streamed"] >= data["streamed"]
    assert f"{smallest:,}" in error_of(2, "run", *arguments, "--memory-budget", smallest - 1)
    assert "smallest budget" in output_of("info", arguments[0], "--memory-budget")


def test_what_makes_the_peak_of_memory(output_of, json_of):
    path = MODELS / "unet_small.pte"
    data = json_of("info", path, "--memory")["methods"]["forward"]
    peak = data["at_the_peak"]
    assert peak["at"] == "node 10 (aten.cat.default)"
    assert sum(tensor["bytes"] for tensor in peak["tensors"]) == peak["bytes"]
    assert 0 < peak["bytes"] <= data["activations"]
    for prefer, figures in data["preferences"].items():
        with vkrt.load(path, prefer=prefer) as program:
            assert program.memory.planned_peak == figures["peak"]
    assert data["preferences"]["memory"]["peak"] < data["peak"]
    out = output_of("info", path, "--memory")
    assert "of node 9 (aten.upsample_nearest2d.vec), until node 10" in out
    out = output_of("info", MODELS / "llama_static.pte", "--memory")
    assert "of a state, until node" in out and 'prefer="speed": peak' in out


def test_ways_are_explained(output_of, device):
    need_one_memory(device)
    out = output_of("run", MLP, "--explain-weights")
    assert "the kernels read it in another order or padding" in out


def test_info_of_a_kernel_between_delegates(output_of):
    out = output_of("info", MODELS / "toy.pte")
    assert "2 delegates" in out and "aten::mean.out" in out


def test_run_with_files(output_of, tmp_path):
    target = tmp_path / "y.npz"
    out = output_of("run", MLP, "--input", MODELS / "mlp.npz", "--output", target, "--memory")
    assert "planned peak" in out and "end of execute" in out
    with np.load(MODELS / "mlp.npz") as expected, np.load(target) as result:
        np.testing.assert_allclose(result["out0"], expected["out0"], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", ["mlp", "buffers"])
def test_run_repeated(name, output_of):
    """The same bits every time, as every run begins with the same states."""
    assert "WRONG" not in output_of("run", MODELS / f"{name}.pte", "--repeat", "3", "--check-bits")


def test_run_with_bits_that_change(capsys, run_vkrt, monkeypatch):
    """They fail where they are compared, with the first output and run."""
    runs = []

    class Flipping(Program):
        def run(self, *inputs, **options):
            outputs = super().run(*inputs, **options)
            runs.append(outputs)
            if len(runs) == 4:
                outputs[-1].view(np.uint8).reshape(-1)[-1] ^= 1
            return outputs

    monkeypatch.setattr("vkrt.cli.run.Program", Flipping)
    for more, count, code in ((["3", "--check-bits"], 3, 0), (["6"], 6, 0),
                              (["6", "--check-bits"], 4, 1)):
        runs.clear()
        found, out, _ = run_vkrt("run", MLP, "--repeat", *more)
        assert (found, len(runs)) == (code, count)
        assert ("WRONG    output 0: run 4 of 6 has other bits than the first" in out) == bool(code)
    with pytest.raises(SystemExit):
        run_vkrt("run", MLP, "--repeat", "0")
    assert "--repeat" in capsys.readouterr().err


def test_run_with_a_picture(output_of, tmp_path):
    image = pytest.importorskip("PIL.Image")
    picture, target = tmp_path / "in.png", tmp_path / "out.png"
    image.new("RGB", (50, 40), (255, 0, 0)).save(picture)
    output_of("run", UPSCALER, "--input", picture, "--output", target)
    assert image.open(target).size == (44, 36)


def test_run_json(json_of):
    assert json_of("run", MLP)["memory"]["weights"] > 0


@pytest.mark.parametrize(("arguments", "code"), [
    (("run", "no-such-file.pte"), 1),
    (("info", str(MODELS / "mlp.npz")), 1),
    (("run", MLP, "--method", "backward"), 2),
    (("run", MLP, "--input", str(MODELS / "toy.npz")), 2),
    (("run", MLP, "--input", MLP), 2),
    (("run", MLP, "--output", "result.xyz"), 2),
])
def test_mistakes_are_one_line(error_of, arguments, code):
    err = error_of(code, *arguments)
    assert err.startswith("vkrt: ") and err.count("\n") == 1


DYNAMIC = str(MODELS / "conv-dyn.pte")


@pytest.mark.parametrize("name, option", [
    ("keep.npz", "--output"), ("keep.npy", "--output"), ("keep.png", "--output"),
    ("keep.pte", "--trace"), ("keep.json", "--trace"), ("keep.jpg", "--pipeline-cache")])
def test_users_files_are_not_written_over(run_vkrt, tmp_path, name, option):
    """Only what is marked as the command's own gives way, and an empty file."""
    path = tmp_path / name
    archive, like = io.BytesIO(), io.BytesIO()
    with zipfile.ZipFile(archive, "w") as opened:  # also what other programs call a zip file
        opened.writestr("letter.xml", "text")
    if name.endswith((".npz", ".npy")):
        (np.savez if name.endswith("z") else np.save)(like, np.zeros(3))
    elif name == "keep.json":  # a trace of another program's
        like.write(b'{"traceEvents": [{"name": "process_name"}]}')
    elif name.endswith(".png"):
        pytest.importorskip("PIL.Image").new("RGB", (2, 2)).save(like, "PNG")
    model = UPSCALER if name.endswith(".png") else MLP
    for content in filter(None, (b"a user's own", archive.getvalue(), like.getvalue())):
        path.write_bytes(content)
        code, out, err = run_vkrt("run", model, option, path)
        assert code == 2 and not out and name in err and "remove this one" in err
        assert path.read_bytes() == content
    path.write_bytes(b"")
    for times in range(2):
        code = run_vkrt("run", model, option, path)[0]
        # Arrays have no place for a mark.
        assert code == (cli.EXIT_USAGE if times and name.endswith(".npy") else 0)
        assert path.stat().st_size > 0


def test_a_device_is_written_to_as_it_is(run_vkrt):
    assert run_vkrt("run", MLP, "--trace", os.devnull)[0] == 0
    assert Path(os.devnull).is_char_device()


def test_info_of_dynamic_shapes(output_of, json_of):
    out = output_of("info", DYNAMIC)
    for words in ("float32[1,3,<=30,<=40]", "float32[1,1,<=60,<=80]", "at the largest sizes"):
        assert words in out
    assert json_of("info", DYNAMIC)["methods"]["forward"]["dynamic"] is True


@pytest.mark.parametrize("options", [(), ("--weights", "stream"), ("--order", "eager"),
                                     ("--memory-budget", "smallest")], ids=str)
def test_info_at_shapes(json_of, output_of, options, tmp_path):
    """What it says is what a program takes that runs at these sizes alone."""
    shapes = {"1,3,16,22": (1, 3, 16, 22), "1,3,30,40": (1, 3, 30, 40), "1,3,8,10": (1, 3, 8, 10)}
    given = [word for sizes in shapes for word in ("--shape", sizes)]
    data = json_of("info", DYNAMIC, *options, *given)["methods"]["forward"]
    assert list(data["shapes"]) == [f"[{sizes}]" for sizes in shapes]
    for sizes, found in zip(shapes.values(), data["shapes"].values()):
        np.save(tmp_path / "x.npy", np.ones(sizes, np.float32))
        memory = json_of("run", DYNAMIC, *options, "--input", tmp_path / "x.npy")["memory"]
        assert found["peak"] == memory["measured_peak"] <= data["peak"] == memory["planned_peak"]
    assert (f"at [1,3,8,10]: {found['dispatches']} dispatches"
            in output_of("info", DYNAMIC, *options, *given))


def test_info_of_a_language_model(json_of, output_of):
    """Without a word about shapes: those of a prompt and of a text."""
    data = json_of("info", MODELS / "llama.pte")["methods"]["forward"]
    longest, single = data["shapes"]
    assert single == "[1,1] [1]" and data["shapes"][single]["peak"] < data["peak"]
    assert data["shapes"][longest]["peak"] <= data["peak"]
    assert f"at {longest}: " in output_of("info", MODELS / "llama.pte")
    assert json_of("info", DYNAMIC)["methods"]["forward"]["shapes"] == {}


@pytest.mark.parametrize("model, shape, words", [
    ("conv-dyn", "1,3,16", "input 0 'input_0' of method 'forward' is float32[1,3,<=30,<=40]"),
    ("conv-dyn", "1,3,31,40", "is float32[1,3,<=30,<=40]"),
    ("conv-dyn", "1,3,0,40", "is float32[1,3,<=30,<=40]"),
    ("conv-dyn", "1,3,16,16 1", "expected the sizes of 1 inputs"),
    ("pair-dyn", "7,6 7,6 1,4", "aten.view_copy.default"),
    ("counted", "4", "what a run finds in them, decides sizes"),
    ("coder", "4", "of which none is"),
])
def test_shapes_that_info_refuses(error_of, model, shape, words):
    assert words in error_of(cli.EXIT_USAGE, "info", MODELS / f"{model}.pte", "--shape", shape)


def test_info_says_that_no_plan_is_kept(output_of):
    assert ("note: no plan of it is kept for later loads: what its inputs hold decides sizes"
            in output_of("info", MODELS / "numbers.pte"))


def test_run_smaller_inputs(output_of, error_of, tmp_path):
    path, output = tmp_path / "x.npy", tmp_path / "y.npz"
    np.save(path, np.ones((1, 3, 16, 22), np.float32))
    out = output_of("run", DYNAMIC, "--input", path, "--output", output, "--memory")
    assert "float32[1, 1, 32, 44]" in out and "[1,3,16,22]" in out
    with np.load(output) as archive:
        assert archive["out0"].shape == (1, 1, 32, 44) and archive["out1"].shape == (1, 5)
    np.save(path, np.ones((1, 3, 16, 44), np.float32))
    error = error_of(cli.EXIT_USAGE, "run", DYNAMIC, "--input", path)
    assert "dimension 3 has to be 1 to 40, not 44" in error


def test_pictures_keep_dynamic_sizes(output_of, tmp_path):
    """A picture becomes smaller only where it is larger than a bound, and keeps its ratio."""
    image = pytest.importorskip("PIL.Image")
    path = tmp_path / "picture.png"
    for width, output in ((50, "float32[1, 1, 28, 80]"), (30, "float32[1, 1, 36, 60]")):
        image.new("RGB", (width, 18), (90, 20, 200)).save(path)
        assert output in output_of("run", DYNAMIC, "--input", path)


@pytest.fixture
def fused(tmp_path):
    """A program with an operator that vkrt lacks, and methods that only return numbers."""
    delegate = w.blob(w.graph(
        values=[w.vk_tensor([2, 4], mem_obj=0), w.vk_tensor([2, 4], mem_obj=1),
                w.vk_tensor([4], mem_obj=2), w.union(3, w.Table({0: w.f64(1e-5)}))],
        chain=[w.call("et_vk.rms_norm_backward.default", 0, 2, 3, 1)], inputs=[0, 2], outputs=[1]))
    path = tmp_path / "fused.pte"
    path.write_bytes(w.program(plans=[
        w.plan(values=[w.tensor([2, 4], memory=(1, 0)), w.tensor([4], memory=(1, 32)),
                       w.tensor([2, 4], memory=(1, 48))], inputs=[0, 1], outputs=[2],
               instructions=[w.union(2, w.Table({0: w.i32(0), 1: w.i32s(0, 1, 2)}))],
               delegates=[w.delegate(0)], buffers=(0, 96)),
        w.plan(values=[w.vk_int(128)], outputs=[0], name="get_max_seq_len"),
        w.plan(values=[w.vk_int(2), w.union(4, w.Table({0: w.f64(0.5)}))], outputs=[0, 1],
               name="get_more")], segments=[delegate]))
    return str(path)


def test_info_of_what_cannot_run_is_a_failure(run_vkrt, error_of, fused):
    code, out, err = run_vkrt("info", fused)
    assert code == cli.EXIT_UNSUPPORTED and not err
    assert ("unsupported: method 'forward' needs 1 thing that vkrt does not have: "
            "et_vk.rms_norm_backward.default x1 "
            "(an RMS norm: x * rsqrt(mean(x * x) + eps) * weight)") in out
    assert "1 delegate with 1 operator, 0 kernels outside" in out
    code, out, _ = run_vkrt("info", fused, "--json")
    assert code == cli.EXIT_UNSUPPORTED
    assert "rms_norm" in json.loads(out)["methods"]["forward"]["unsupported"]
    assert "an RMS norm" in error_of(cli.EXIT_UNSUPPORTED, "run", fused)


def test_methods_that_only_return_numbers_are_a_line_each(run_vkrt, fused):
    _, out, _ = run_vkrt("info", fused)
    assert out.endswith("\nmethod get_max_seq_len returns 128\nmethod get_more returns 2, 0.5\n")
    methods = json.loads(run_vkrt("info", fused, "--json")[1])["methods"]
    assert methods["get_max_seq_len"] == {"values": [128]}
    assert methods["get_more"] == {"values": [2, 0.5]}


def test_info_says_what_runs_on_the_host(output_of, json_of, on_host):
    model = MODELS / "places.pte"
    out, data = output_of("info", model), json_of("info", model)["methods"]["forward"]
    assert data["kernels_on_host"] == {"aten::cumsum.out": 1, "aten::sort.values": 1}
    lines = [line.split(" x ")[1] for line in out.splitlines() if line.endswith(" on the host")
             and " x " in line]
    assert lines == ["aten::cumsum.out on the host", "aten::sort.values on the host"]
    assert " pipelines, 2 kernels on the host (each run waits 2 times for the device, reads " in out
    assert data["host_waits"] == 2
    # The sorted tensor is one of the outputs, and float32[1,3,6,7]: read, and two results written.
    assert data["host_reads"] >= 504 and data["host_writes"] >= 2 * 504
    assert len(data["kernels"]) > 2
    assert "on the host" not in output_of("info", MODELS / "toy.pte")


@pytest.fixture
def unread():
    """The end of a pipe that nobody reads."""
    read, write = os.pipe()
    os.close(read)
    yield write
    os.close(write)


def streamed(arguments, stdout, stderr=subprocess.PIPE):
    """A command in a process of its own with these streams: (exit code, stderr)."""
    done = subprocess.run([sys.executable, "-m", "vkrt", *arguments], stdout=stdout, stderr=stderr,
                          text=True, check=False)
    return done.returncode, done.stderr


@pytest.mark.parametrize("arguments", [
    ("devices",), ("info", MLP), ("info", MLP, "--json"), ("run", MLP, "--memory"),
    ("bench", MLP, "--runs", "1")], ids=" ".join)
def test_output_that_nobody_reads_ends_a_command_quietly(arguments, unread):
    assert streamed(arguments, unread) == (cli.EXIT_PIPE, "")


def test_errors_that_nobody_reads_keep_their_exit_code(unread):
    assert streamed(("run", "no-such-file.pte"), unread, unread)[0] == cli.EXIT_FAILED


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="the system has no full device")
def test_output_that_cannot_be_written_is_a_failure():
    with open("/dev/full", "w", encoding="utf-8") as full:
        code, err = streamed(("devices",), full)
    assert code == cli.EXIT_FAILED
    assert err.startswith("vkrt: ") and "space" in err and err.count("\n") == 1
