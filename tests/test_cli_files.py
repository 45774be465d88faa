"""The `vkrt` command and the files that people have: other models, pictures, sounds, full disks."""

from __future__ import annotations

import io
import os
import sys
import textwrap
import zipfile

import numpy as np
import pytest
from support import MODELS, on_small_file_system, python, reference_of, run_python

import vkrt
from vkrt.cli import main as cli
from vkrt.cli import pictures, sounds
from vkrt.cli.run import ARCHIVE_MARK
from vkrt.errors import InputError
from vkrt.method.arguments import TensorInfo

MLP = str(MODELS / "mlp.pte")
UPSCALER = str(MODELS / "superres_small.pte")


# Other kinds of files


def zipped(name: str) -> bytes:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as archive:
        archive.writestr(name, b"12345678")
    return data.getvalue()


def field(number: int, content: bytes) -> bytes:
    """A field of a protobuf message that has bytes."""
    return bytes([number << 3 | 2, len(content)]) + content


# Name, first bytes as the formats have them, and words of the message
KINDS = {
    "onnx": (b"\x08\x0a" + field(2, b"pytorch") + field(3, b"2.1.0"), "an ONNX model"),
    "onnx without a producer": (b"\x08\x07" + field(7, field(1, b"node")), "an ONNX model"),
    "core ml": (b"\x08\x08" + field(2, field(1, b"image")), "a Core ML model"),
    "torch.save": (zipped("net/data.pkl"), "a PyTorch file"),
    "torch.jit": (zipped("net/data/0"), "a PyTorch file"),
    "torch.save, old": (b"\x80\x02\x8a\x0al\xfc\x9cF\xf9 j\xa8P\x19.", "an old PyTorch file"),
    "safetensors": ((64).to_bytes(8, "little") + b'{"__metadata__":{', "a file of safetensors"),
    "gguf": (b"GGUF\x03\0\0\0", "a GGUF model"),
    "tflite": (b"\x1c\0\0\0TFL3\x14\0", "a TensorFlow Lite model"),
    "git lfs": (b"version https://git-lfs.github.com/spec/v1\noid sha256:0\n", "git lfs pull"),
    "html": (b"\n<!DOCTYPE html>\n<html>", "a web page"),
    "npz": (zipped("in0.npy"), "--input"),
    "jpeg": (b"\xff\xd8\xff\xe0\0\x10JFIF\0", "a picture: that is an input of a run (--input)"),
    "png": (b"\x89PNG\r\n\x1a\n", "a picture: that is an input of a run (--input)"),
    "wav": (b"RIFF\x24\0\0\0WAVEfmt ", "a sound: that is an input of a run (--input)"),
    "zip": (zipped("net.pte"), "a zip archive"),
    "packed weights": (b"vkrtpack\1\0\0\0", "`vkrt compile`"),
    "ptd": (b"\x10\0\0\0FT01", "--data-path"),
    "nothing": (b"", "is empty"),
}


@pytest.mark.parametrize("kind", KINDS)
def test_other_files_are_recognised(error_of, tmp_path, kind):
    """By the command, and by Python with the same words."""
    content, words = KINDS[kind]
    path = tmp_path / "net.pte"
    path.write_bytes(content)
    error = error_of(cli.EXIT_FAILED, "info", path)
    assert error.count("\n") == 1
    assert error.startswith(f"vkrt: {path} is ") and words in error
    with pytest.raises(vkrt.FormatError) as caught:
        vkrt.verify(path)
    assert f"vkrt: {caught.value}\n" == error


def test_other_files_are_recognised_as_data(error_of, tmp_path):
    path = tmp_path / "data.ptd"
    for content, words in ((KINDS["git lfs"][0], "git lfs pull"),
                           ((MODELS / "mlp.pte").read_bytes(), "is a program (.pte)")):
        path.write_bytes(content)
        error = error_of(cli.EXIT_FAILED, "info", MLP, "--data-path", path)
        assert f"vkrt: {path} is " in error and words in error


def test_a_folder_says_what_it_has(error_of, tmp_path):
    (tmp_path / "net.pte").touch()
    error = error_of(cli.EXIT_FAILED, "info", tmp_path)
    assert error == f"vkrt: {tmp_path} is a folder: name a .pte file that it has (net.pte)\n"


def test_programs_are_no_other_kind(tmp_path):
    """Neither whole ones nor damaged ones."""
    path = tmp_path / "net.pte"
    for model in sorted(MODELS.glob("*.pte")):
        data = model.read_bytes()
        path.write_bytes(data[:len(data) // 3])
        with pytest.raises((vkrt.FormatError, vkrt.UnsupportedError)) as caught:
            vkrt.verify(path)
        assert str(caught.value).startswith(f"{path}: ")


@pytest.mark.driver
@pytest.mark.parametrize("command", ["info", "run"])
def test_errors_name_the_file(run_vkrt, tmp_path, command):
    """Also where it is the content of a delegate that is damaged, or an input that does not fit."""
    data = bytearray((MODELS / "mlp.pte").read_bytes())
    at = data.index(b"aten.linear.default")
    data[at:at + 11] = b"aten.lineal"
    path = tmp_path / "odd.pte"
    path.write_bytes(data)
    code, _, error = run_vkrt(command, path)
    if command == "run":  # what is missing is a result of `info`, below the name of the method
        assert code == cli.EXIT_UNSUPPORTED and error.startswith(f"vkrt: {path}: ")
        toy = str(MODELS / "toy.npz")
        code, _, error = run_vkrt(command, MLP, "--input", toy)
        assert code == cli.EXIT_USAGE and error.startswith(f"vkrt: {toy}: input 0")
    at = data.index(b"VK00")
    data[at:at + 4] = b"XXXX"
    path.write_bytes(data)
    code, _, error = run_vkrt(command, path)
    assert code == cli.EXIT_FAILED and error.startswith(f"vkrt: {path}: ")


# Pictures


@pytest.fixture
def picture(tmp_path):
    """Writes a picture: red on the left of its middle, blue on the right."""
    image = pytest.importorskip("PIL.Image")

    def write(width, height, name="in.png"):
        pixels = np.zeros((height, width, 3), np.uint8)
        pixels[:, :width // 2, 0] = pixels[:, width // 2:, 2] = 255
        image.fromarray(pixels).save(tmp_path / name)
        return str(tmp_path / name)

    return write


def info_of(*sizes, dynamic=(), dtype="float32"):
    return TensorInfo("x", sizes, dtype, dynamic)


@pytest.mark.driver
def test_a_picture_is_not_squashed_without_a_word(output_of, error_of, picture):
    """The input has 22 x 18 pixels."""
    path = picture(60, 20)
    error = error_of(cli.EXIT_USAGE, "run", UPSCALER, "--input", path)
    assert f"{path} has 60 x 20 pixels, the input 22 x 18" in error and "--resize" in error
    for resize in pictures.RESIZES:
        output_of("run", UPSCALER, "--input", path, "--resize", resize)
    output_of("run", UPSCALER, "--input", picture(220, 180))


def test_how_pictures_are_resized(picture):
    path, info = picture(60, 20), info_of(1, 3, 20, 20)
    fit, crop, stretch = (pictures.read(path, info, pictures.Preset(resize))
                          for resize in pictures.RESIZES)
    assert fit.shape == crop.shape == stretch.shape == (1, 3, 20, 20)
    # Black above and below; a third of it between.
    assert not fit[0, :, :6].any() and not fit[0, :, 14:].any() and fit[0, 0, 10, 2] == 1
    assert crop[0, 0, :, :8].min() == stretch[0, 0, :, :8].min() == 1
    assert crop[0, 2, :, 12:].min() == 1 and not crop[0, 1].any()
    wide = pictures.read(path, info_of(1, 3, 20, 100, dynamic=(3,)), pictures.Preset())
    assert wide.shape == (1, 3, 20, 60)
    assert pictures.read(path, info_of(1, 1, 10, 30, dtype="float16"), pictures.Preset()
                         ).dtype == "float16"


def test_values_of_pictures(picture):
    path = picture(20, 20)
    plain = pictures.read(path, info_of(1, 3, 20, 20), pictures.Preset())
    scaled = pictures.read(path, info_of(1, 3, 20, 20),
                           pictures.Preset(mean=(0.5,), scale=pictures.numbers("1,2,1/0.25")))
    np.testing.assert_allclose(scaled, (plain - 0.5) * np.reshape([1, 2, 4], (3, 1, 1)))
    with pytest.raises(InputError, match="--mean has 3 numbers, the input 1 channels"):
        pictures.read(path, info_of(1, 1, 20, 20), pictures.PRESETS["imagenet"])


def test_imagenet_is_as_torchvision_has_it(tmp_path):
    """The shorter side is 256, the middle 224 x 224 are taken, and moments are those."""
    image = pytest.importorskip("PIL.Image")
    pixels = np.zeros((256, 320, 3), np.uint8)
    pixels[16:240, 48:272] = np.random.default_rng(1).integers(0, 256, (224, 224, 3))
    image.fromarray(pixels).save(tmp_path / "in.png")
    found = pictures.read(str(tmp_path / "in.png"), info_of(1, 3, 224, 224),
                          pictures.PRESETS["imagenet"])
    expected = (pixels[16:240, 48:272] / 255 - [0.485, 0.456, 0.406]) / [0.229, 0.224, 0.225]
    np.testing.assert_allclose(found[0], expected.transpose(2, 0, 1), atol=1e-5)


def test_a_photo_is_turned_as_its_camera_says(tmp_path):
    photo = pytest.importorskip("PIL.Image").new("RGB", (40, 20))
    exif = photo.getexif()
    exif[0x0112] = 6  # orientation: a quarter of a turn
    photo.save(tmp_path / "in.jpg", exif=exif)
    assert pictures.read(str(tmp_path / "in.jpg"), info_of(1, 3, 40, 20), pictures.Preset()
                         ).shape == (1, 3, 40, 20)


@pytest.mark.driver
def test_labels(output_of, json_of, error_of, tmp_path):
    labels = tmp_path / "labels.txt"
    labels.write_text("".join(f"label {number}\n" for number in range(30)), encoding="utf-8")
    out = output_of("run", MLP, "--input", MODELS / "mlp.npz", "--labels", labels, "--top", 3)
    _, (expected,) = reference_of("mlp")
    best = np.argsort(-expected.reshape(-1))[:3]
    assert [line.split(maxsplit=1)[1] for line in out.splitlines()[2:5]] == [
        f"{number} label {number}" for number in best]
    data = json_of("run", MLP, "--labels", labels)
    assert len(data["top"]) == 5 and data["top"][0]["label"].startswith("label ")
    labels.write_text("one\n", encoding="utf-8")
    error = error_of(cli.EXIT_USAGE, "run", MLP, "--labels", labels)
    assert "--labels has 1 lines, output 0 30 numbers" in error


WITHOUT = """
    import sys
    sys.modules[sys.argv.pop(1)] = None  # as if it were not installed
    from vkrt.cli import main as cli
    from vkrt.program.program import Program
    def load(*arguments):
        print("loaded")
        sys.exit(9)
    Program.__init__ = load
    sys.exit(cli.main(sys.argv[1:]))
"""


@pytest.mark.parametrize(("package", "advice", "arguments"), [
    ("PIL", "pip install '.[pictures]'", ("run", UPSCALER, "--output", "out.png")),
    ("PIL", "pip install '.[pictures]'", ("run", UPSCALER, "--input", "README.md")),
    ("tokenizers", "pip install '.[text]'",
     ("generate", MLP, "--tokenizer", "tokenizer.json", "--prompt", "x")),
])
def test_packages_that_are_missing(tmp_path, package, advice, arguments):
    """Said before anything is loaded, and not as a wrong argument."""
    (tmp_path / "README.md").touch()
    (tmp_path / "tokenizer.json").write_text("{}", encoding="utf-8")
    done = python("-c", textwrap.dedent(WITHOUT), package, *arguments, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (cli.EXIT_FAILED, ""), done.stderr
    assert done.stderr.startswith("vkrt: ") and done.stderr.count("\n") == 1
    assert "which is not installed" in done.stderr and advice in done.stderr


@pytest.mark.driver
@pytest.mark.parametrize(("arguments", "words"), [
    (("--input", "nothing.npy"), "nothing.npy"),
    (("--output", "out.png"), "output 0 is [3, 10], not a picture")])
def test_what_cannot_be_is_said_before_the_run(run_vkrt, monkeypatch, arguments, words):
    monkeypatch.setattr(vkrt.Program, "run", lambda *_, **__: pytest.fail("it ran"))
    code, _, error = run_vkrt("run", MLP, *arguments)
    assert code in (cli.EXIT_FAILED, cli.EXIT_USAGE) and words in error


# Outputs that cannot be written

FULL = """
    mount -t tmpfs -o size=16k none "$1" && cd "$1"
    [ -z "$3" ] || printf '%s' "$3" | xxd -r -p > "$2"
    before=$(stat -c %Y%s "$2" 2>/dev/null)
    cat /dev/zero > fill 2>/dev/null
    shift 3
    "$@"
    echo "exit $?"
    ls -A
"""


@pytest.mark.driver
@pytest.mark.parametrize("there", [False, True])
@pytest.mark.parametrize(("option", "name", "head"), [
    ("--output", "out.npz", ARCHIVE_MARK), ("--output", "out.npy", b""),
    ("--output", "out.png", pictures.MARK), ("--output", "out.wav", sounds.MARK),
    ("--trace", "trace.json", b'{"traceEvents": [{"name": "vkrt on ')])
def test_a_full_disk_leaves_nothing(tmp_path, option, name, head, there):
    """And what was there stays."""
    model = UPSCALER if name.endswith(".png") else MLP
    done = on_small_file_system(FULL, tmp_path, name, head.hex() if there else "", sys.executable,
                                "-m", "vkrt", "run", model, option, name)
    lines = done.stdout.splitlines()
    assert "exit 1" in lines and lines[lines.index("exit 1") + 1:] == sorted(
        ["fill", *([name] if there and head else [])]), done
    assert done.stderr.startswith("vkrt: ") and f"No space left on device: '{name}'" in done.stderr


def test_what_numpy_cannot_write_names_the_file(tmp_path):
    """Its error of a part that was not written has neither a number nor a name."""
    code = """
        import resource, sys
        import numpy as np
        from vkrt.files.replaceable import replacing
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
        try:
            with replacing(sys.argv[1]) as file:
                np.save(file, np.zeros(100_000))
        except OSError as error:
            print(error, end="")
    """
    name = str(tmp_path / "out.npy")
    said = run_python(code, name)
    assert said.count(name) == 1 and " written" in said
    assert not os.listdir(tmp_path)


@pytest.mark.driver
def test_an_output_keeps_who_may_read_it(output_of, tmp_path):
    """It takes the place of the file that was there, also behind a link."""
    target, link = tmp_path / "out.npz", tmp_path / "link.npz"
    target.touch(mode=0o600)
    link.symlink_to(target)
    output_of("run", MLP, "--output", link)
    assert link.is_symlink() and target.stat().st_size > 0
    assert target.stat().st_mode & 0o777 == 0o600
    assert sorted(os.listdir(tmp_path)) == ["link.npz", "out.npz"]
