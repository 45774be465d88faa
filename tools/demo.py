"""The quickstart's main job: a photo upscaled four times by a real network, and what it took.

Writes upscaled.png and bicubic.png (for comparison) to the current folder.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import numpy as np
from PIL import Image

import vkrt

DEMO = Path(__file__).parent / "demo"
MODEL = DEMO / "realesr-animevideov3-fp16.pte"


def main() -> int:
    photo = Image.open(DEMO / "photo.png").convert("RGB")
    pixels = np.asarray(photo, np.float32) / 255
    image = np.ascontiguousarray(pixels.transpose(2, 0, 1)[None])

    start = time.perf_counter()
    with vkrt.load(MODEL) as program:
        loaded = time.perf_counter()
        info = program.metadata().inputs[0]
        result, = program.run(image.astype(info.dtype))
        first = time.perf_counter()
        program.run(image.astype(info.dtype), out=[result])
        again = time.perf_counter()

        device = program.device.info
        print(f"driver   {device.name} ({device.driver_name} {device.driver_info})")
        print(f"model    {MODEL.name}, {MODEL.stat().st_size / 1e6:.2f} MB: {info} -> "
              f"{program.metadata().outputs[0]}")
        print(f"times    load {(loaded - start) * 1e3:.0f} ms, first run "
              f"{(first - loaded) * 1e3:.0f} ms, second run {(again - first) * 1e3:.0f} ms")
        print()
        print(program.memory.table())

    upscaled = (result[0].astype(np.float32).clip(0, 1) * 255).round().astype(np.uint8)
    Image.fromarray(upscaled.transpose(1, 2, 0)).save("upscaled.png")
    width, height = photo.size
    photo.resize((4 * width, 4 * height), Image.Resampling.BICUBIC).save("bicubic.png")

    expected = np.asarray(Image.open(DEMO / "expected.png").convert("RGB"), np.int16)
    worst = int(np.abs(upscaled.transpose(1, 2, 0).astype(np.int16) - expected).max())
    print()
    print(f"wrote upscaled.png ({4 * width}x{4 * height}) and bicubic.png; against eager PyTorch "
          f"no pixel differs by more than {worst} of 255")
    return 0 if worst <= 2 else 1


if __name__ == "__main__":
    sys.exit(main())
