"""Do random quantized networks give what they give in numpy, however they are loaded?

    python tools/check/quantized.py                        networks 0 to 999
    python tools/check/quantized.py --first 1000 --count 9 these

Runs on the driver that VK_DRIVER_FILES says. Each number is a network of those of
tests/ops/any_quantized.py and any_weights.py: convolutions of 8 bits of every kind and what stands
between them, linear layers of 8 bits, layers with weights of 4 and of 8 bits, or attention with
such layers (any_heads.py). Every third one, but for attention, has dynamic sizes, and runs at
several of them. First each node is compared by itself, with what the device made of the nodes
before. Then the network is loaded in the ways that `ways` chooses: storages, preferences, fusions,
weights copied or streamed within a budget, profiles of other
devices. A line is printed for each network of which a node alone gives other integers, or that
gives a larger relative L2 error than its `max_error`; or whose memory is not as planned, or that
fails. The last line says the largest errors. Exits 1 if one was wrong.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from vkrt.vk.device import Device

TESTS = Path(__file__).resolve().parent.parent.parent / "tests"
sys.path[:0] = [str(TESTS), str(TESTS / "ops")]

from loads import check, make, ways  # noqa: E402


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--count", type=int, default=1000)
    options = parser.parse_args()
    wrong, worst = 0, [0.0, 0.0]
    with Device.open() as device:
        for number in range(options.first, options.first + options.count):
            net, way = make(number), None
            try:
                for count, way in enumerate(ways(number)):
                    worst[count == 0] = max(worst[count == 0],
                                            check(net, number, device, way, count == 0))
            except Exception as failure:
                wrong += 1
                text = str(failure).strip().replace("\n", " ")
                print(f"{number}: {way}: {type(failure).__name__}: {text}", flush=True)
    print(f"{options.count} networks, {wrong} wrong; largest error {worst[False]:.1e}, of a "
          f"node alone {worst[True]:.1e}")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
