"""The quickstart's main job: a photo upscaled four times by a real network, and what it took.

Writes upscaled.png, bicubic.png and both side by side, comparison.png, to the current folder.
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
    large = Image.fromarray(upscaled.transpose(1, 2, 0))
    large.save("upscaled.png")
    width, height = photo.size
    bicubic = photo.resize(large.size, Image.Resampling.BICUBIC)
    bicubic.save("bicubic.png")
    both = Image.new("RGB", (2 * large.width, large.height))
    both.paste(bicubic, (0, 0))
    both.paste(large, (large.width, 0))
    both.save("comparison.png")

    expected = np.asarray(Image.open(DEMO / "expected.png").convert("RGB"), np.int16)
    worst = int(np.abs(upscaled.transpose(1, 2, 0).astype(np.int16) - expected).max())
    print()
    print(f"wrote upscaled.png ({large.width}x{large.height}), bicubic.png and comparison.png")
    print(f"against eager PyTorch no pixel differs by more than {worst} of 255")
    return 0 if worst <= 2 else 1


if __name__ == "__main__":
    sys.exit(main())
