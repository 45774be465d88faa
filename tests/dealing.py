"""Which tests a run takes.

`tools/test` runs the tests several times: on lavapipe, on SwiftShader, under validation, and on the
devices of `tests/hostile`. What each run takes follows from what a test is (its name and
parameters, the kernels of a sample) and from nothing else, so that a commit has one result.

VKRT_TEST_DEPTH: "full" takes everything and is the default; "all" and "quick" are what
`tools/test --all` and `tools/test` use. VKRT_TEST_RUN: one of `RUNS`.

* All: a test with a storage runs on lavapipe in one of them and on SwiftShader in the two others. A
  half of these, and a half of the other tests marked `driver`, runs under validation; the other
  half of the latter runs on SwiftShader. A profile takes one of these tests in so many as there are
  profiles.
* Quick: a third of each test's parameters, and one at least, of what "all" takes.

A test marked `dealt` deals out its parameters itself.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Sequence
from typing import Any

from hostile_device import profile_names

STORAGES = ("texel", "buffer", "texture3d")
RUNS = ("lavapipe", "swiftshader", "validation", "profile")

DEPTH = os.environ.get("VKRT_TEST_DEPTH", "full")
RUN = os.environ.get("VKRT_TEST_RUN", "lavapipe")
# Where few tests run, those that repeat something do so less often.
QUICK = DEPTH == "quick" or (DEPTH == "all" and RUN != "lavapipe")


def number_of(identity: Any) -> int:
    """A number that looks random and is always the same."""
    return zlib.crc32(str(identity).encode())


def turned(identity: Any) -> tuple[str, ...]:
    """The storages, beginning with the one in which a test or a sample runs on lavapipe."""
    first = number_of(identity) % len(STORAGES)
    return STORAGES[first:] + STORAGES[:first]


def is_of_profile(identity: Any) -> bool:
    """Whether the device of this run, one of the profiles, takes a test or a sample."""
    names = profile_names()
    return number_of(identity) % len(names) == names.index(os.environ["VKRT_TEST_PROFILE"])


def dealt(items: Sequence[Any]) -> list[Any]:
    """The tests (`pytest.Item`) that this run takes."""
    if DEPTH == "full":
        return list(items)
    # A test in each of its storages: one without any is alone
    tests: dict[str, dict[str, Any]] = {}
    for item in items:
        storage = _storage_of(item)
        tests.setdefault(item.nodeid.replace(storage or "\0", ""), {})[storage] = item
    kept = {item.nodeid for name, of in tests.items() for item in _taken(name, of)}
    if DEPTH == "quick":
        kept = _third(kept)
    return [item for item in items if "dealt" in item.keywords or item.nodeid in kept]


def _storage_of(item: Any) -> str:
    storage = item.callspec.params.get("storage") if hasattr(item, "callspec") else None
    return storage if storage in STORAGES else ""


def _taken(name: str, of: dict[str, Any]) -> list[Any]:
    """Of a test in some storages, or in none (""), those that this run takes."""
    halved = number_of(name) % 2 == 0
    order = [of[storage] for storage in turned(name) if storage in of]
    if order:
        if RUN == "swiftshader":
            return order[1:]
        return order[:1] if RUN == "lavapipe" or (
            halved if RUN == "validation" else is_of_profile(name)) else []
    item = of[""]
    if RUN == "lavapipe" or "driver" not in item.keywords:
        return [item]
    if RUN == "profile":
        return [item] if is_of_profile(name) else []
    return [item] if halved == (RUN == "validation") else []


def _third(names: set[str]) -> set[str]:
    """A third of each test's parameters, and one at least."""
    tests: dict[str, list[str]] = {}
    for name in sorted(names, key=number_of):
        tests.setdefault(name.partition("[")[0], []).append(name)
    return {name for found in tests.values()
            for name in [n for n in found if number_of(n) % 3 == 0] or found[:1]}
