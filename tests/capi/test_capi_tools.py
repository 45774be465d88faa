"""The hosts of tools/hosts: what they print is what PyTorch says, and nothing stays behind them."""

import re
import shutil
import subprocess
import sys
import wave
from pathlib import Path

import numpy as np
import pytest
from c_hosts import WARNINGS, build, either, flags, needs_compiler, program_of, run
from host_device import PRINTING
from support import MODELS, QUICK, close_to, need_model, same_bits

import vkrt
from vkrt.capi.config import LIBRARY, folder

HOSTS = Path(__file__).parent.parent.parent / "tools" / "hosts"
pytestmark = [pytest.mark.driver, needs_compiler]
# Without warnings in the oldest C, too
OLDEST = ("-std=c89", "-pedantic", "-D_GNU_SOURCE")
BEFORE, NEW = 64, 512
# What hosts in other languages print of mlp.pte
NUMBERS = "output 0: [3, 10] -0.197427 0.196739 0.435301\n"


def host(name, tmp_path):
    return build(HOSTS / f"{name}.c", tmp_path / name, *OLDEST)


def write_wav(path, samples, *, rate=16000, channels=1):
    with wave.open(str(path), "wb") as file:
        file.setparams((channels, 2, rate, 0, "NONE", ""))
        file.writeframes((samples * 32768).round().clip(-32768, 32767).astype("<i2").tobytes())


def test_speech(tmp_path):
    """From when to when the reference's probabilities are above a half."""
    program, stream = need_model("silero-vad.pte"), need_model("silero-vad.stream.npz")
    with np.load(stream) as archive:
        samples = archive["x"][:, 0, BEFORE:BEFORE + NEW].ravel()
        speaks = archive["prob"] > 0.5
    write_wav(tmp_path / "speech.wav", samples)
    borders = np.flatnonzero(np.diff(np.concatenate(([0], speaks, [0])).astype(int))) * NEW / 16000
    assert len(borders) % 2 == 0 and 0 < speaks.sum() < len(speaks)
    said = run(host("speech", tmp_path), program, tmp_path / "speech.wav").splitlines()
    assert said == [f"{start:.3f} s to {end:.3f} s"
                    for start, end in borders.reshape(-1, 2).tolist()]


def test_ids_of_a_language_model(compiled_of, tmp_path):
    """A compiled program, without Python, in steps of the sizes that it is compiled for."""
    out = compiled_of("llama", shapes=[[(1, 1), (1,)], [(1, 2), (1,)]])
    prompt, expected = [7, 33, 20, 5, 9], []
    with vkrt.load(MODELS / "llama.pte") as program:
        ids = list(prompt)
        for _ in range(6):
            program.reset_state()
            logits = program.run(np.array([ids]), np.array([0]))[0]
            expected.append(int(logits.reshape(-1, logits.shape[-1])[-1].argmax()))
            ids.append(expected[-1])
    said = run(host("generate", tmp_path), out, 6, *prompt, VKRT_HOME="/nowhere")
    assert list(map(int, said.split())) == expected


@pytest.mark.parametrize("options", [
    {"weights": "stream"}, {"weights": "stream", "fusions": "off"}, {"memory_budget": "smallest"},
    {"memory_budget": "40MB"}], ids=str)
def test_a_streamed_language_model(options, tmp_path):
    """At the sizes that vkrt/text/README.md names, the ids are those of mapped weights, and in
    Python the bits; within rounding where the smallest budget divides layers."""
    path = need_model("smollm2-135m-4w.pte")
    shapes = [[(1, count), (1,)] for count in (1, 8, 64)]
    calls = [(np.arange(count)[None] * 7 % 49152, np.array([place]))
             for count, place in ((64, 0), (8, 64), (1, 72), (1, 73), (8, 74), (64, 82), (1, 146))]
    found = []
    for name, chosen in (("mapped", {"fusions": options.get("fusions", "on")}), ("own", options)):
        out = tmp_path / f"{name}.vkx"
        vkrt.compile(path, out, shapes=shapes, **chosen)
        with vkrt.load(out) as program:
            outputs = [program(*call)[0] for call in calls]
            assert program.memory.planned_peak == program.memory.measured_peak
        ids = map(str, range(20, 93))
        found.append((outputs, run(host("generate", tmp_path), out, 4, *ids,
                                   VKRT_HOME="/nowhere")))
    if options.get("memory_budget") == "smallest":
        close_to(found[1][0], found[0][0], 5e-6)
    else:
        same_bits(found[1][0], found[0][0])
    assert found[1][1] == found[0][1]


def test_speech_refuses_other_files(tmp_path):
    made = host("speech", tmp_path)
    write_wav(tmp_path / "fast.wav", np.zeros(99), rate=44100)
    (tmp_path / "short.wav").write_bytes(b"RIFF")
    for name in ("fast.wav", "short.wav", "nothing.wav"):
        assert f"{name}: not a WAV file" in run(made, "no.pte", tmp_path / name, code=1)


def test_picture(tmp_path):
    program = need_model("efficientnet-lite0.pte")
    images = need_model("efficientnet-lite0.images.npz")
    made = host("picture", tmp_path)
    with np.load(images) as archive:
        pictures, logits = archive["x"], archive["logits"]
    for number in range(2 if QUICK else 4):
        pixels = (pictures[number].transpose(1, 2, 0) * 128 + 127).round().astype(np.uint8)
        height, width, _ = pixels.shape
        path = tmp_path / "picture.ppm"
        path.write_bytes(b"P6\n# a comment\n%d %d\n255\n" % (width, height) + pixels.tobytes())
        said = run(made, program, path, 127, 128).splitlines()
        best = np.argsort(-logits[number])[:5]
        assert [line.split()[1] for line in said] == [f"{index}:" for index in best]
        scores = [float(line.split()[2]) for line in said]
        np.testing.assert_allclose(scores, logits[number][best], atol=2e-3)


def test_picture_refuses_other_files(tmp_path):
    path = tmp_path / "picture.ppm"
    path.write_bytes(b"P6 3 4 255\n" + bytes(36))
    said = run(host("picture", tmp_path), MODELS / "superres_small.pte", path, code=1)
    assert "not a binary PPM of 22 x 18 pixels" in said


def test_picture_shows_no_class_whose_score_is_nan(tmp_path):
    """Black pixels by a scale of 0 are NaN, and so is what the network makes of them."""
    path = tmp_path / "picture.ppm"
    path.write_bytes(b"P6 22 18 255\n" + bytes(3 * 22 * 18))
    assert run(host("picture", tmp_path), MODELS / "superres_small.pte", path, 0, 0) == ""


def build_renderer(tmp_path):
    """The host in C++, with its shaders; skips where something to build it is missing."""
    compiler, glslc = shutil.which("c++"), shutil.which("glslc")
    if compiler is None or glslc is None:
        pytest.skip("no C++ compiler, or no glslc")
    for shader in ("pattern", "measure"):
        subprocess.run([glslc, "-mfmt=c", HOSTS / f"{shader}.comp", "-o",
                        tmp_path / f"{shader}.inc"], check=True)
    made = tmp_path / "renderer"
    # A brace with the first field is Vulkan's idiom.
    done = subprocess.run(
        [compiler, "-std=c++11", *WARNINGS, "-Wno-missing-field-initializers",
         HOSTS / "renderer.cpp", "-o", made, f"-I{tmp_path}", *flags(), "-lvulkan"],
        text=True, capture_output=True)
    if "vulkan/vulkan.h" in done.stderr or "-lvulkan" in done.stderr:
        pytest.skip("no headers, or no library, of Vulkan")
    assert done.returncode == 0, done.stderr
    return made


@either
def test_renderer(is_compiled, compiled_of, tmp_path):
    """Pictures that stay on the host's device: what its shaders measure is what vkrt gives for the
    same pictures as arrays, and nothing is copied."""
    path = program_of(compiled_of, "superres_small", is_compiled)
    where = {"VKRT_HOME": "/nowhere"} if is_compiled else {}
    said = run(build_renderer(tmp_path), path, 3, **PRINTING, **where).splitlines()
    expected = []
    with vkrt.load(MODELS / "superres_small.pte") as program:
        sizes = program.metadata().inputs[0].sizes
        for frame in range(3):
            numbers = (np.arange(np.prod(sizes)) * 7919 + frame * 104729) % 256
            y, = program.run((numbers / 255).astype(np.float32).reshape(sizes))
            expected.append((y.min(), y.max(), y.mean()))
    # A layer that finds something prints it here.
    found = [re.fullmatch(r"frame \d: (\S+) to (\S+), mean (\S+), 0 bytes copied", line)
             for line in said]
    assert all(found) and len(found) == 3, said
    np.testing.assert_allclose([[float(word) for word in line.groups()] for line in found],
                               expected, atol=2e-5)


def test_nothing_stays_behind(tmp_path):
    """Loads, runs and closes again and again: after the twentieth time it does not grow."""
    times = 60
    said = run(host("repeat", tmp_path), MODELS / "mlp.pte", times).splitlines()
    sizes = [int(line.split()[0]) for line in said]
    assert len(sizes) == times and all(line.split()[1] == "0" for line in said)
    # Resident bytes go up and down by what the driver's threads hold at the moment.
    assert min(sizes[40:]) - max(sizes[:20]) < 1 << 20, sizes


def test_host_in_rust(tmp_path):
    rustc = shutil.which("rustc")
    if rustc is None:
        pytest.skip("no rustc")
    made = tmp_path / "host"
    done = subprocess.run(
        [rustc, "--edition=2021", "-D", "warnings", HOSTS / "host.rs", "-o", made,
         "-C", f"link-arg={folder() / LIBRARY}", "-C", f"link-arg=-Wl,-rpath,{folder()}"],
        text=True, capture_output=True)
    assert done.returncode == 0, done.stderr
    assert run(made, MODELS / "mlp.pte") == NUMBERS
    assert "none.pte" in run(made, tmp_path / "none.pte", code=1)


def test_host_by_cffi():
    pytest.importorskip("cffi")
    assert run(sys.executable, HOSTS / "host.py", MODELS / "mlp.pte") == NUMBERS
