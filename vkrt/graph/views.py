"""Views that are not in the file: the exporter leaves out views of fixed sizes, and gives them the
memory of the viewed tensor.

So a value is what was written last to its memory, under its own id or another one. A value that is
read before anything was written to its memory stays unknown.
"""

from __future__ import annotations

from vkrt import pte

# A range of planned memory: its number, the first byte and the one behind the last
Place = tuple[int, int, int]


class Writes:
    """Which values of a method were written so far, and where."""

    def __init__(self, plan: pte.ExecutionPlan):
        self._plan = plan
        # The values in write order; for each place its last value and the number of that write
        self._order: list[int] = []
        self._last: dict[Place, tuple[int, int]] = {}
        self._count = 0
        # The number of the write that a view shows
        self._views: dict[int, int] = {}
        for value_id in plan.inputs:
            self.add(value_id)

    def add(self, value_id: int) -> None:
        place = self._place(value_id)
        if place is not None:
            self._count += 1
            self._order.append(value_id)
            self._last[place] = value_id, self._count

    def add_first(self, value_id: int) -> None:
        """Notes that a value was there before anything was written."""
        place = self._place(value_id)
        if place is not None:
            self._order.insert(0, value_id)
            self._last.setdefault(place, (value_id, 0))

    def add_view(self, value_id: int) -> None:
        """Notes that a value is a view of what was written last to its memory."""
        place = self._place(value_id)
        if place is not None:
            self._views[value_id] = self._last[place][1]

    def source_of(self, value_id: int) -> int | None:
        """The value that was last written to the memory of a value that is about to be read: both
        have the same elements. None if there is none, or if the view is known."""
        place = self._place(value_id)
        last, number = self._last.get(place, (None, 0)) if place is not None else (None, 0)
        if (last is None or last == value_id or value_id in self._plan.inputs
                or self._views.get(value_id) == number):
            return None
        assert place is not None
        for other in reversed(self._order):
            found = self._place(other)
            assert found is not None
            if found[0] == place[0] and found[1] < place[2] and place[1] < found[2]:
                # What another value has overwritten in part is no view.
                return other if found == place else None
        return None

    def copy(self) -> Writes:
        made = Writes.__new__(Writes)
        made.__dict__.update(self.__dict__, _order=list(self._order), _last=dict(self._last),
                             _views=dict(self._views))
        return made

    def _place(self, value_id: int) -> Place | None:
        """The place of a value of fixed size in planned memory; None for any other value."""
        meta = self._plan.values[value_id]
        if (not isinstance(meta, pte.TensorMeta) or meta.memory is None or meta.dynamism
                or not meta.nbytes):
            return None
        return meta.memory[0], meta.memory[1], meta.memory[1] + meta.nbytes
