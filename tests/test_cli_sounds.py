"""Files of sounds as inputs and outputs of the `vkrt` command."""

import wave

import numpy as np
import pytest
from support import MODELS
from test_cli_files import info_of

import vkrt
from vkrt.cli import main as cli
from vkrt.cli import sounds
from vkrt.errors import InputError

MLP = str(MODELS / "mlp.pte")


def write_sound(path, data, width=2, channels=1, rate=8000):
    with wave.open(str(path), "wb") as file:
        file.setnchannels(channels)
        file.setsampwidth(width)
        file.setframerate(rate)
        file.writeframes(data)
    return str(path)


@pytest.mark.parametrize(("width", "data"), [
    (1, bytes([128, 192, 0, 255])), (2, np.int16([0, 1 << 14, -1 << 15, (1 << 15) - 1]).tobytes()),
    (3, b"\0\0\0\0\0\x40\0\0\x80\xff\xff\x7f"),
    (4, np.int32([0, 1 << 30, -1 << 31, (1 << 31) - 1]).tobytes())])
def test_samples(tmp_path, width, data):
    path = write_sound(tmp_path / "in.wav", data, width)
    values, rate = sounds.read(path, info_of(1, 1, 4), None, None)
    assert rate == 8000 and values.shape == (1, 1, 4) and values.dtype == "float32"
    np.testing.assert_allclose(values.reshape(-1), [0, 0.5, -1, 1], atol=0.01)


def test_channels_and_lengths_of_sounds(tmp_path):
    data = np.int16([[8192, 24576]] * 10).tobytes()
    path = write_sound(tmp_path / "in.wav", data, channels=2)

    def read(*sizes, resize=None, rate=None, dynamic=()):
        return sounds.read(path, info_of(*sizes, dynamic=dynamic), resize, rate)[0]

    assert np.array_equal(read(1, 10), [[0.5] * 10])  # the mean of both
    assert np.array_equal(read(1, 2, 10), [[[0.25] * 10, [0.75] * 10]])
    assert read(10).shape == (10,) and read(1, 99, dynamic=(1,)).shape == (1, 10)
    assert np.array_equal(read(1, 4, resize="crop"), [[0.5] * 4])
    assert np.array_equal(read(1, 12, resize="fit"), [[0.5] * 10 + [0, 0]])
    for sizes, options, words in (((1, 4), {}, "10 samples, the input takes 4.* crop"),
                                  ((1, 12), {}, "10 samples, the input takes 12.* fit"),
                                  ((1, 3, 10), {}, "2 channels, the input .* has 3"),
                                  ((1, 10), {"rate": 16000}, "8000 samples a second.*ffmpeg")):
        with pytest.raises(InputError, match=words):
            read(*sizes, **options)


def test_what_is_no_sound(tmp_path):
    path = tmp_path / "in.wav"
    for content in (b"", b"ID3\x04", b"RIFF\x04\0\0\0WAVE"):
        path.write_bytes(content)
        with pytest.raises(InputError, match=r"in\.wav: not a \.wav file"):
            sounds.read(str(path), info_of(1, 10), None, None)


@pytest.mark.driver
def test_run_with_sounds(output_of, error_of, tmp_path):
    """The program takes [3, 30], which is as a sound of 3 channels, and gives [3, 10]."""
    values = np.random.default_rng(1).integers(-9999, 9999, (30, 3)).astype("<i2")
    path = write_sound(tmp_path / "in.wav", values.tobytes(), channels=3)
    output = tmp_path / "out.wav"
    output_of("run", MLP, "--input", path, "--output", output)
    with vkrt.load(MLP) as program:
        expected, = program.run(np.ascontiguousarray(values.T / np.float32(32768)))
    with wave.open(str(output)) as file:
        assert (file.getnchannels(), file.getframerate(), file.getnframes()) == (3, 8000, 10)
        found = np.frombuffer(file.readframes(10), "<i2").reshape(10, 3) / 32767
    np.testing.assert_allclose(found.T, expected.clip(-1, 1), atol=2e-5)
    # Its own is written over, a sound of the user's is not.
    output_of("run", MLP, "--output", output)
    error = error_of(cli.EXIT_USAGE, "run", MLP, "--output", path)
    assert "in.wav: a file is there that is not marked" in error
