"""Sounds (.wav) as inputs and outputs of `vkrt run`."""

from __future__ import annotations

import argparse
import math
import struct
import wave
from typing import Any, BinaryIO

import numpy as np

from vkrt.errors import InputError

# The mark of files that are written here
MARK = b"ISFT\4\0\0\0vkrt"
# Samples a second of an output where nothing says it
RATE = 16000


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--rate", type=int, metavar="HZ",
                        help="samples a second that the network takes: a .wav of another rate is "
                             "refused; of a .wav output, too (default: that of the .wav input, "
                             f"without one {RATE})")


def read(name: str, info: Any, resize: str | None, rate: int | None) -> tuple[np.ndarray, int]:
    """A sound as an array of -1 to 1 with an input's sizes [.., N], and its samples per second.

    If the input has one channel, several channels become their mean.

    Raises:
        InputError: the file is no .wav of integers, or the input takes no sounds, or a sound of
            another length or rate.
    """
    if info is None or not info.sizes or info.dtype[:5] != "float":
        raise InputError(f"{name}: the input is {info}, a sound is float32 [.., N]; pass a .npy "
                         "file")
    channels, length = math.prod(info.sizes[:-1]), info.sizes[-1]
    values, found = _samples(name)
    if rate is not None and found != rate:
        raise InputError(f"{name}: {found} samples a second, the network takes {rate}; convert it "
                         f"(ffmpeg -i {name} -ar {rate} other.wav)")
    if channels == 1:
        values = values.mean(1, keepdims=True)
    if values.shape[1] != channels:
        raise InputError(f"{name}: {values.shape[1]} channels, the input {info} has {channels}")
    count = len(values)
    if count > length and resize == "crop":
        values = values[:length]
    elif count < length and resize == "fit" and len(info.sizes) - 1 not in info.dynamic_dims:
        values = np.pad(values, ((0, length - count), (0, 0)))
    elif count > length or count < length and len(info.sizes) - 1 not in info.dynamic_dims:
        raise InputError(f"{name}: {count} samples, the input takes {length}: choose --resize "
                         + ("crop (its beginning)" if count > length else "fit (silence behind)"))
    sizes = (*info.sizes[:-1], len(values))
    return np.ascontiguousarray(values.T.reshape(sizes), info.dtype), found


def _samples(name: str) -> tuple[np.ndarray, int]:
    """The samples of a file as float32 [N, channels], and their number per second."""
    try:
        with wave.open(name, "rb") as file:
            width, channels, rate = file.getsampwidth(), file.getnchannels(), file.getframerate()
            data = file.readframes(file.getnframes())
    except (wave.Error, EOFError) as error:
        raise InputError(f"{name}: not a .wav file of whole numbers ({error}); convert it (ffmpeg "
                         f"-i {name} -c:a pcm_s16le other.wav)") from error
    data = data[:len(data) // (width * channels) * width * channels]
    if width == 1:
        values = np.frombuffer(data, np.uint8).astype(np.float32) - 128
    else:  # the highest bytes of 32-bit numbers
        words = np.zeros((len(data) // width, 4), np.uint8)
        words[:, 4 - width:] = np.frombuffer(data, np.uint8).reshape(-1, width)
        values = words.view("<i4")[:, 0] / np.float32(1 << 32 - 8 * width)
    return (values / (1 << 8 * width - 1)).astype(np.float32).reshape(-1, channels), rate


def write(file: BinaryIO, output: Any, rate: int) -> None:
    """Writes an output [.., N] of -1 to 1 as a .wav of 16 bits, a channel for each row."""
    rows = np.asarray(output, np.float32)
    rows = rows.reshape(-1, rows.shape[-1] if rows.ndim else 1)
    count = len(rows)
    layout = struct.pack("<HHIIHH", 1, count, rate, 2 * count * rate, 2 * count, 16)
    data = (rows.T.clip(-1, 1) * 32767).round().astype("<i2").tobytes()
    file.write(_chunk(b"RIFF", b"WAVE" + _chunk(b"fmt ", layout) + _chunk(b"LIST", b"INFO" + MARK)
                      + _chunk(b"data", data)))


def _chunk(name: bytes, content: bytes) -> bytes:
    return name + struct.pack("<I", len(content)) + content
