"""The arena: the memory that the activations of a method lie in, whatever its inputs' sizes.

It has the bytes that the largest sizes run so far need, and is allocated anew only when larger
ones are run.
"""

from __future__ import annotations

from vkrt.hints import Any
from vkrt.plan.memory_plan import MemoryPlan, Place
from vkrt.vk.memory import MemoryKind

# Kinds of blocks that are the arena's
KINDS = ("activation", "host", "spill")

# What makes blocks of two plans one and the same: (kind, bits of the memory types)
Key = tuple[str, int]


class Arena:
    """Blocks of activations, shared by all sizes of a method: one run uses them at a time.

    Args:
        allocator: whose account they are on.
        spilled: the account of the host's memory in which activations wait.
    """

    def __init__(self, allocator: Any, spilled: Any):
        self._allocator = allocator
        self._spilled = spilled
        self._blocks: dict[Key, Any] = {}

    @property
    def nbytes(self) -> int:
        """Bytes allocated, without those in which activations wait."""
        return sum(block.size for (kind, _), block in self._blocks.items() if kind != "spill")

    def holds(self, plan: MemoryPlan) -> bool:
        """Whether the activations of a plan find room."""
        return all(key in self._blocks and block.nbytes <= self._blocks[key].size
                   for key, block in _needed(plan).items())

    def reserve(self, plan: MemoryPlan, max_bytes: int | None = None) -> None:
        """Makes room for the activations of a plan. What there was is released before.

        No buffer may be bound to the arena.

        Args:
            max_bytes: of the arena, where its blocks stay larger than the plan needs because they
                were before.

        Raises:
            DeviceMemoryError: there is not enough memory; the arena is empty then.
        """
        needed = _needed(plan)
        sizes = {key: max(planned.nbytes, self._blocks[key].size if key in self._blocks else 0)
                 for key, planned in needed.items()}
        total = sum(n for (kind, _), n in sizes.items() if kind != "spill")
        if max_bytes is not None and total > max_bytes:
            sizes = {key: planned.nbytes for key, planned in needed.items()}
        self.release()
        try:
            for key, planned in needed.items():
                account = self._spilled if planned.kind == "spill" else self._allocator
                kind = (MemoryKind.MEMORY_DEVICE if planned.kind == "activation"
                        else MemoryKind.MEMORY_READBACK)
                self._blocks[key] = account.allocate(sizes[key], planned.alignment,
                                                     planned.type_bits, kind)
        except BaseException:
            self.release()
            raise

    def blocks(self, plan: MemoryPlan) -> list[tuple[tuple[Place, ...], Any]]:
        """(places, memory) of each of a plan's blocks of activations."""
        return [(planned.places, self._blocks[planned.kind, planned.type_bits])
                for planned in plan.blocks if planned.kind in KINDS]

    def release(self) -> None:
        """Frees everything; the arena can be used again. Interrupted, it has what is not freed."""
        while self._blocks:
            self._blocks.popitem()[1].close()


def _needed(plan: MemoryPlan) -> dict[Key, Any]:
    return {(block.kind, block.type_bits): block for block in plan.blocks if block.kind in KINDS}
