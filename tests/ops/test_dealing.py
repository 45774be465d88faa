"""What the runs of `tools/test` take: together everything, and nothing twice without need."""

from types import SimpleNamespace

import dealing
import pytest
import test_ops
from selection import chosen

STORAGES = dealing.STORAGES
DRIVERS = ("lavapipe", "newer", "swiftshader", "validation")


def item(number: int, storage: str | None, marks: tuple[str, ...]) -> SimpleNamespace:
    """A test with a parameter."""
    params = {"number": number} | ({"storage": storage} if storage else {})
    words = "-".join(map(str, params.values()))
    return SimpleNamespace(nodeid=f"tests/test_{number % 9}.py::test[{words}]", keywords=marks,
                           callspec=SimpleNamespace(params=params))


ITEMS = [item(number, storage, marks)
         for marks, numbers in ((("driver",), range(300)), ((), range(300, 400)))
         for number in numbers for storage in (STORAGES if number % 2 else (None,))]


def taken(monkeypatch, depth: str, run: str) -> set[str]:
    """What a run takes; those on another driver than lavapipe are of tests marked `driver`."""
    monkeypatch.setattr(dealing, "DEPTH", depth)
    monkeypatch.setattr(dealing, "RUN", run)
    return {one.nodeid for one in dealing.dealt(ITEMS)
            if run == "lavapipe" or "driver" in one.keywords}


def test_all_takes_everything(monkeypatch):
    runs = {run: taken(monkeypatch, "all", run) for run in DRIVERS}
    ours, newer = runs["lavapipe"], runs["newer"]
    # Every test once on one of the lavapipes, and again where SwiftShader or validation has it
    assert not ours & newer and 0 < len(newer) < len(ours) / 4
    assert len(ours | newer) == 150 + 150 + 50 + 50
    assert newer < runs["validation"]
    driven = {one.nodeid for one in ITEMS if "driver" in one.keywords}
    assert newer | (ours & driven) <= runs["swiftshader"] | runs["validation"] | {
        name for name in driven if any(storage in name for storage in STORAGES)}
    # Of three storages one is left to a full run
    assert len(driven - (ours | newer | runs["swiftshader"])) == 150


def test_one_driver_is_enough(monkeypatch):
    once = [item(number, None, ("driver", "once")) for number in range(20)]
    monkeypatch.setattr(dealing, "DEPTH", "all")
    counts = {}
    for run in DRIVERS:
        monkeypatch.setattr(dealing, "RUN", run)
        counts[run] = len(dealing.dealt(once))
    assert counts["lavapipe"] + counts["newer"] == 20
    assert counts["swiftshader"] == counts["validation"] == 0


def test_quick_takes_no_more_where_there_are_two_lavapipes(monkeypatch):
    runs = {run: taken(monkeypatch, "quick", run) for run in DRIVERS}
    assert not runs["lavapipe"] & runs["newer"]
    for run, names in runs.items():
        assert names < taken(monkeypatch, "all", run)
    # As many as one would take
    monkeypatch.setattr(dealing, "is_of_newer", lambda identity: False)
    assert taken(monkeypatch, "quick", "lavapipe") == runs["lavapipe"] | runs["newer"]


def places_of(monkeypatch, depth: str, run: str) -> set[tuple[str, str]]:
    """The samples that a run takes, each with its storage."""
    monkeypatch.setattr(test_ops, "DEPTH", depth)
    monkeypatch.setattr(test_ops, "RUN", run)
    return {(str(variant), storage)
            for (_, storage), group in test_ops._groups().items() for variant in group}


@pytest.mark.parametrize("depth", ["quick", "all"])
def test_the_lavapipes_have_every_kernel_between_them(monkeypatch, depth):
    places = {run: places_of(monkeypatch, depth, run) for run in DRIVERS}
    ours, newer = places["lavapipe"], places["newer"]
    assert ours | newer >= chosen("kernels")
    assert newer and not ours & newer and newer <= places["swiftshader"]
    # Without the newer one these would run the same.
    monkeypatch.setattr(test_ops, "is_of_newer", lambda identity: False)
    assert places_of(monkeypatch, depth, "newer") == set()
    assert ours | newer | places["swiftshader"] == (
        places_of(monkeypatch, depth, "lavapipe") | places_of(monkeypatch, depth, "swiftshader"))
