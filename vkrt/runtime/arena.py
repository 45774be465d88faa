"""The arena: the memory that the activations of a method lie in, whatever its inputs' sizes.

It has the bytes that the largest sizes run so far need. It is allocated anew only for larger sizes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from vkrt.executable.memory import Block
from vkrt.vk.memory import MemoryKind

# Blocks of two plans with the same key are the same block: (kind, bits of the memory types)
Key = tuple[str, int]


class Arena:
    """Blocks of activations, shared by all sizes of a method: one run uses them at a time.

    Args:
        allocator: allocates and accounts for them.
        spilled: allocates the host memory that holds spilled activations.
    """

    def __init__(self, allocator: Any, spilled: Any):
        self._allocator = allocator
        self._spilled = spilled
        self._blocks: dict[Key, Any] = {}

    @property
    def nbytes(self) -> int:
        """Bytes allocated, without those for spilled activations."""
        return sum(block.size for (kind, _), block in self._blocks.items() if kind != "spill")

    def holds(self, planned: Sequence[Block]) -> bool:
        """Whether the arena has room for the planned blocks."""
        return all(key in self._blocks and block.nbytes <= self._blocks[key].size
                   for key, block in _needed(planned).items())

    def reserve(self, planned: Sequence[Block], max_bytes: int | None = None) -> None:
        """Makes room for the planned blocks, after releasing all former ones.

        No buffer may be bound to the arena.

        Args:
            max_bytes: up to this size of the arena, blocks that were larger than is needed stay so.

        Raises:
            DeviceMemoryError: there is not enough memory; the arena is empty then.
        """
        needed = _needed(planned)
        sizes = {key: max(block.nbytes, self._blocks[key].size if key in self._blocks else 0)
                 for key, block in needed.items()}
        total = sum(n for (kind, _), n in sizes.items() if kind != "spill")
        if max_bytes is not None and total > max_bytes:
            sizes = {key: block.nbytes for key, block in needed.items()}
        self.release()
        try:
            for key, block in needed.items():
                account = self._spilled if block.kind == "spill" else self._allocator
                kind = (MemoryKind.MEMORY_DEVICE if block.kind == "activation"
                        else MemoryKind.MEMORY_READBACK)
                self._blocks[key] = account.allocate(sizes[key], block.alignment, block.type_bits,
                                                     kind)
        except BaseException:
            self.release()
            raise

    def blocks(self, planned: Sequence[Block]) -> list[Any]:
        """The memory of each of the blocks."""
        return [self._blocks[block.kind, block.type_bits] for block in planned]

    def release(self) -> None:
        """Frees everything; the arena can be used again. If interrupted, it keeps the rest."""
        while self._blocks:
            self._blocks.popitem()[1].close()


def _needed(planned: Sequence[Block]) -> dict[Key, Block]:
    return {(block.kind, block.type_bits): block for block in planned}
