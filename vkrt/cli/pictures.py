"""Pictures as inputs and outputs of `vkrt run`, and the labels of what a network saw in one."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from vkrt.errors import InputError, missing_package

# The mark of files that are written here
MARK = b"Software\0vkrt"
RESIZES = ("fit", "crop", "stretch")


@dataclass(frozen=True)
class Preset:
    """How a network's training pictures were prepared; see `add_arguments`.

    Attributes:
        middle: the part of a picture's width and height that "crop" keeps at most.
    """

    resize: str | None = None
    mean: tuple[float, ...] = (0.0,)
    scale: tuple[float, ...] = (1.0,)
    middle: float = 1.0


PRESETS = {"imagenet": Preset("crop", (0.485, 0.456, 0.406), (1 / 0.229, 1 / 0.224, 1 / 0.225),
                              224 / 256)}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--resize", choices=RESIZES,
                        help="of pictures whose sides have another ratio than the input's: fit "
                             "puts black around them, crop takes their middle, stretch changes the "
                             "ratio; of sounds: fit puts silence behind them, crop takes their "
                             "beginning (default: they are refused)")
    parser.add_argument("--mean", type=numbers, metavar="M[,M,M]",
                        help="taken from the values of pictures, which are 0 to 1; one number, or "
                             "one for each channel (default: 0)")
    parser.add_argument("--scale", type=numbers, metavar="S[,S,S]",
                        help="what the values are multiplied by then; may be fractions, such as "
                             "1/0.229 for a standard deviation, or 255 (default: 1)")
    parser.add_argument("--preset", choices=PRESETS,
                        help="what --resize, --mean and --scale are where they are not given: "
                             "imagenet is crop, and the moments of torchvision's classifiers "
                             "(default: none)")
    parser.add_argument("--labels", metavar="FILE",
                        help="the names of classes, one in a line, for the numbers of the first "
                             "output (default: none)")
    parser.add_argument("--top", type=int, metavar="N",
                        help="print the N largest numbers of the first output (default: 5 with "
                             "--labels, else 0)")


def numbers(word: str) -> tuple[float, ...]:
    """The numbers of an option, which may be fractions."""
    try:
        parts = [part.partition("/") for part in word.split(",")]
        return tuple(float(over) / float(under or 1) for over, _, under in parts)
    except (ValueError, ZeroDivisionError):
        raise argparse.ArgumentTypeError(f"{word!r}: expected numbers, such as 0.5 or "
                                         "0.485,0.456,0.406") from None


def preset_of(options: argparse.Namespace) -> Preset:
    base = PRESETS.get(options.preset, Preset())
    return Preset(options.resize or base.resize, options.mean or base.mean,
                  options.scale or base.scale, base.middle)


def need_pillow(name: str) -> Any:
    """The package that reads and writes pictures (PackageError where it is not installed)."""
    try:
        import PIL.Image
        import PIL.ImageOps
        import PIL.PngImagePlugin
    except ImportError as error:
        raise missing_package("pillow", f"{name}: a picture", "pictures") from error
    return PIL


def read(name: str, info: Any, preset: Preset) -> np.ndarray:
    """A picture as an array [1, 3, H, W] or [1, 1, H, W] of an input's dtype.

    If height or width is dynamic, the picture keeps its ratio; if both are, it is never enlarged.

    Raises:
        InputError: the input takes no pictures, or sides of another ratio and no resize is chosen.
    """
    pil = need_pillow(name)
    sizes: tuple[int, ...] = () if info is None else info.sizes
    if len(sizes) != 4 or sizes[0] != 1 or sizes[1] not in (1, 3) or info.dtype[:5] != "float":
        raise InputError(f"{name}: the input is {info}, a picture is float32 [1, 3, H, W] or "
                         "[1, 1, H, W]; pass a .npy file")
    for option, given in (("mean", preset.mean), ("scale", preset.scale)):
        if len(given) not in (1, sizes[1]):
            raise InputError(f"{name}: --{option} has {len(given)} numbers, the input {sizes[1]} "
                             "channels")
    try:
        with pil.Image.open(name) as opened:
            picture = pil.ImageOps.exif_transpose(opened).convert("RGB" if sizes[1] == 3 else "L")
    except pil.UnidentifiedImageError as error:
        raise InputError(f"{name}: not a picture, .npy, .npz or .wav file") from error
    pixels = np.asarray(_resized(name, picture, info, preset, pil))
    values = pixels.reshape(*pixels.shape[:2], sizes[1]) / np.float32(255)
    values = (values - np.array(preset.mean, "f4")) * np.array(preset.scale, "f4")
    return np.ascontiguousarray(values.transpose(2, 0, 1)[None], info.dtype)


def _resized(name: str, picture: Any, info: Any, preset: Preset, pil: Any) -> Any:
    width, height = picture.size
    side = _target(width, height, info)
    best = pil.Image.Resampling.BICUBIC
    if preset.resize == "crop":
        return pil.ImageOps.fit(picture, side, best, bleed=(1 - preset.middle) / 2)
    if preset.resize == "fit":
        return pil.ImageOps.pad(picture, side, best)
    # The same ratio, as far as whole pixels allow
    is_alike = (abs(side[0] - width * side[1] / height) <= 0.5
                or abs(side[1] - height * side[0] / width) <= 0.5)
    if not is_alike and preset.resize is None:
        raise InputError(f"{name} has {width} x {height} pixels, the input {side[0]} x {side[1]}, "
                         "another ratio: choose --resize fit, crop or stretch, or a --preset")
    return picture if picture.size == side else picture.resize(side, best)


def _target(width: int, height: int, info: Any) -> tuple[int, int]:
    """The width and height that a picture becomes."""
    sides = ((3, width, info.sizes[3]), (2, height, info.sizes[2]))
    fixed = [most / own for dim, own, most in sides if dim not in info.dynamic_dims]
    factor = min(fixed or (1.0, *(most / own for _, own, most in sides)))
    wide, high = (min(max(round(own * factor), 1), most) if dim in info.dynamic_dims else most
                  for dim, own, most in sides)
    return wide, high


def check_output(name: str, info: Any) -> None:
    """Raises InputError if an output is not a picture, before that is computed."""
    sizes: tuple[int, ...] = () if info is None else info.sizes
    if len(sizes) != 4 or sizes[0] != 1 or sizes[1] not in (1, 3):
        raise InputError(f"{name}: output 0 is {list(sizes)}, not a picture [1, 3, H, W] or "
                         "[1, 1, H, W]")


def write(file: BinaryIO, output: np.ndarray) -> None:
    """Writes an output with values of 0 to 1 as a .png."""
    pixels = (output[0].clip(0, 1) * 255).round().astype(np.uint8).transpose(1, 2, 0)
    picture = pixels if pixels.shape[2] == 3 else pixels[:, :, 0]
    pil = need_pillow("output")
    said = pil.PngImagePlugin.PngInfo()
    said.add_text(*MARK.decode().split("\0"))
    pil.Image.fromarray(picture).save(file, "PNG", pnginfo=said)


def read_labels(name: str | None) -> list[str]:
    """The lines of a file; none without one."""
    return Path(name).read_text("utf-8", "replace").splitlines() if name else []


def top(output: Any, labels: list[str], count: int) -> list[dict[str, Any]]:
    """The largest numbers of an output: "index", "value" and, with labels, "label" of each
    (InputError: there are not as many labels as numbers)."""
    values = np.asarray(output).reshape(-1)
    if labels and len(labels) != values.size:
        raise InputError(f"--labels has {len(labels)} lines, output 0 {values.size} numbers")
    found = np.argsort(-values, kind="stable")[:count]
    return [{"index": int(i), "value": float(values[i]), **({"label": labels[i]} if labels else {})}
            for i in found]
