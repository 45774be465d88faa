"""Which tests a run takes.

`tools/test` runs the tests several times: on lavapipe, on a newer one, on SwiftShader, under
validation, and on the devices of `tests/hostile`. What each run takes follows from what a test is
(its name and parameters, the kernels of a sample) and from nothing else, so that a commit has one
result.

VKRT_TEST_DEPTH: "full" takes everything and is the default; "all" and "quick" are what
`tools/test --all` and `tools/test` use. VKRT_TEST_RUN: one of `RUNS`.

* All: a test with a storage runs on lavapipe in one of them and on SwiftShader in another one.
  A quarter of these, and a half of the other tests marked `driver`, run under validation; the other
  half of the latter runs on SwiftShader. A profile takes one of these tests in so many as there are
  profiles.
* Quick: of what "all" takes, on the lavapipes a quarter of each test's parameters and one at least,
  elsewhere an eighth of the tests.
* In both the newer lavapipe takes a part of the other one's tests marked `driver` away from it, all
  of them tests that run on that under validation, too.

A test marked `dealt` deals out its parameters itself. One marked `once` (what sanitizers say of the
host's code) runs on one of the lavapipes only.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Sequence
from typing import Any

from hostile_device import profile_names

STORAGES = ("texel", "buffer", "texture3d")
RUNS = ("lavapipe", "newer", "swiftshader", "validation", "profile")
LAVAPIPES = ("lavapipe", "newer")

DEPTH = os.environ.get("VKRT_TEST_DEPTH", "full")
RUN = os.environ.get("VKRT_TEST_RUN", "lavapipe")
# Where few tests run, those that repeat something do so less often.
QUICK = DEPTH == "quick" or (DEPTH == "all" and RUN not in LAVAPIPES)


def number_of(identity: Any) -> int:
    """A number that looks random and is always the same."""
    return zlib.crc32(str(identity).encode())


def turned(identity: Any) -> tuple[str, ...]:
    """The storages, beginning with the one in which a test or a sample runs on lavapipe."""
    first = number_of(identity) % len(STORAGES)
    return STORAGES[first:] + STORAGES[:first]


def is_of_newer(identity: Any) -> bool:
    """Whether the newer lavapipe takes a test or a group of samples in the place of the other one.

    They are few, because its compiler takes more than twice as long.
    """
    return number_of(identity) % 8 == 0


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
    names = {item.nodeid: name for name, of in tests.items() for item in _taken(name, of)}
    kept = _quick(set(names)) if DEPTH == "quick" else set(names)
    return [item for item in items if "dealt" in item.keywords or (
        item.nodeid in kept and _is_this_lavapipe_s(item, names[item.nodeid]))]


def _is_this_lavapipe_s(item: Any, name: str) -> bool:
    """Whether this run, of one of the two, takes a test that one of them takes."""
    newer = "driver" in item.keywords and is_of_newer(name)
    return RUN not in LAVAPIPES or newer == (RUN == "newer")


def _storage_of(item: Any) -> str:
    storage = item.callspec.params.get("storage") if hasattr(item, "callspec") else None
    return storage if storage in STORAGES else ""


def _taken(name: str, of: dict[str, Any]) -> list[Any]:
    """Of a test in some storages, or in none (""), those that this run takes."""
    order = [of[storage] for storage in turned(name) if storage in of]
    first = order[0] if order else of[""]
    if "driver" not in first.keywords:
        return [first]
    if "once" in first.keywords and RUN not in LAVAPIPES:
        return []
    if order and RUN == "swiftshader":
        return order[1:2]
    if RUN in LAVAPIPES:
        return [first]
    if RUN == "profile":
        return [first] if is_of_profile(name) else []
    share = 4 if order else 2
    return [first] if (number_of(name) % share == 0) == (RUN == "validation") else []


def _quick(names: set[str]) -> set[str]:
    """Of tests by name, those that a quick run takes."""
    if RUN not in LAVAPIPES:
        return {name for name in names if number_of(name) // 2 % 8 == 0}
    tests: dict[str, list[str]] = {}
    for name in sorted(names, key=number_of):
        tests.setdefault(name.partition("[")[0], []).append(name)
    return {name for found in tests.values()
            for name in [n for n in found if number_of(n) % 4 == 0] or found[:1]}
