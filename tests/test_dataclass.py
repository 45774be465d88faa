"""vkrt.dataclass makes what the standard library's `dataclass` makes."""

from __future__ import annotations

import copy
import dataclasses

import pytest

import vkrt.dataclass


@pytest.fixture(params=[{}, {"slots": True}, {"eq": False}], ids=str)
def classes(request):
    """The same class by both."""
    def made_by(module):
        @module.dataclass(frozen=True, **request.param)
        class Point:
            x: int
            y: int = 2
            names: list[str] = module.field(default_factory=list, compare=False)
            hidden: int = module.field(default=3, repr=False)

            def __post_init__(self):
                if self.x < 0:
                    raise ValueError("x")

            @property
            def both(self):
                return self.x, self.y
        return Point
    return made_by(dataclasses), made_by(vkrt.dataclass)


@pytest.mark.parametrize("before", [0, 1], ids=["first", "later"])
def test_same_class(classes, before):
    """The first object compiles what makes it; later ones find that."""
    outcomes = []
    for made in classes:
        for number in range(before):
            made(number)
        one, equal, other = made(1), made(x=1, names=["a"]), made(1, 3, hidden=4)
        outcome = [repr(one), repr(equal), one == equal, one == other, one == (1, 2, 3),
                   hash(one) == hash(equal), one.both, dataclasses.asdict(equal),
                   dataclasses.replace(one, y=5).both, vkrt.dataclass.asdict(equal),
                   made.__match_args__, copy.copy(equal) == equal, copy.deepcopy(equal).names,
                   dataclasses.is_dataclass(made), hasattr(one, "__dict__"),
                   one.names is not made(1).names, [f.name for f in dataclasses.fields(made)]]
        for wrong in (lambda one=one: setattr(one, "x", 2), lambda one=one: delattr(one, "x")):
            with pytest.raises(dataclasses.FrozenInstanceError) as caught:
                wrong()
            outcome.append(str(caught.value))
        for arguments, named in (((), {}), ((1, 2, [], 3, 4), {}), ((-1,), {}), ((1,), {"x": 2}),
                                 ((1,), {"z": 2})):
            with pytest.raises((TypeError, ValueError)) as caught:
                made(*arguments, **named)
            outcome.append((caught.type, str(caught.value).rpartition(".")[2]))
        outcomes.append(outcome)
    assert outcomes[0] == outcomes[1]


@pytest.mark.parametrize("module", [dataclasses, vkrt.dataclass], ids=["standard", "ours"])
def test_classes_that_may_change(module):
    @module.dataclass
    class Counter:
        count: int = 0
        most: int = module.field(init=False)
        limit: float = module.field(default=2.5, metadata={"help": "why"})

        def __post_init__(self):
            self.most = self.count

    counter = Counter()
    counter.count += 1
    assert counter != Counter(1)  # whose `most` is another
    assert Counter(1) == Counter(1)
    changed = module.replace(counter, count=4)
    assert (changed.count, changed.most, changed.limit) == (4, 4, 2.5)
    assert Counter.__hash__ is None and Counter.limit == 2.5 and not hasattr(Counter, "most")
    assert [(f.name, f.init, f.metadata.get("help")) for f in module.fields(Counter)] \
        == [("count", True, None), ("most", False, None), ("limit", True, "why")]


def test_fields_of_a_base_come_first():
    @vkrt.dataclass.dataclass(frozen=True)
    class Base:
        x: int

    @vkrt.dataclass.dataclass(frozen=True)
    class Derived(Base):
        y: int = 3

    for _ in range(2):
        made = Derived(1)
        assert (made.x, made.y, Base(2).x) == (1, 3, 2) and made != Base(1)
    assert vkrt.dataclass.asdict(made) == {"x": 1, "y": 3}
