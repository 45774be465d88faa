"""vkrt.dataclass makes what the standard library's `dataclass` makes."""

from __future__ import annotations

import dataclasses

import pytest

import vkrt.dataclass


@pytest.fixture(params=[{}, {"slots": True}, {"eq": False}], ids=str)
def classes(request):
    """The same class by both."""
    def made_by(dataclass):
        @dataclass(frozen=True, **request.param)
        class Point:
            x: int
            y: int = 2
            names: list[str] = dataclasses.field(default_factory=list, compare=False)
            hidden: int = dataclasses.field(default=3, repr=False)

            def __post_init__(self):
                if self.x < 0:
                    raise ValueError("x")

            @property
            def both(self):
                return self.x, self.y
        return Point
    return made_by(dataclasses.dataclass), made_by(vkrt.dataclass.dataclass)


def test_same_class(classes):
    outcomes = []
    for made in classes:
        one, equal, other = made(1), made(x=1, names=["a"]), made(1, 3, hidden=4)
        outcome = [repr(one), repr(equal), one == equal, one == other, one == (1, 2, 3),
                   hash(one) == hash(equal), one.both, dataclasses.asdict(equal),
                   dataclasses.replace(one, y=5).both, hasattr(one, "__dict__"),
                   one.names is not made(1).names, [f.name for f in dataclasses.fields(made)]]
        for wrong in (lambda one=one: setattr(one, "x", 2), lambda one=one: delattr(one, "x")):
            with pytest.raises(dataclasses.FrozenInstanceError) as caught:
                wrong()
            outcome.append(str(caught.value))
        for arguments in ((), (1, 2, [], 3, 4), (-1,)):
            with pytest.raises((TypeError, ValueError)) as caught:
                made(*arguments)
            outcome.append((caught.type, str(caught.value).rpartition(".")[2]))
        outcomes.append(outcome)
    assert outcomes[0] == outcomes[1]


def test_classes_that_may_change():
    @vkrt.dataclass.dataclass
    class Counter:
        count: int = 0

    counter = Counter()
    counter.count += 1
    assert counter == Counter(1)
