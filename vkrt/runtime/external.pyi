from collections.abc import Iterable

from vkrt.executable.external_buffers import DeviceBuffer
from vkrt.executable.records import ExecutionPlan

MAX_BYTES: int
LEAST: int
STEP_BYTES: int

class ExternalBinding:
    def __init__(self, plan: ExecutionPlan, alignment: int,
                 inputs: Iterable[tuple[int, DeviceBuffer]],
                 outputs: Iterable[tuple[int, DeviceBuffer]]) -> None: ...
    @property
    def copied_bytes(self) -> int: ...
    @property
    def uses(self) -> tuple[list[tuple[int, int, int]], list[tuple[int, int, int, int]],
                            list[tuple[int, int, int, int]]]: ...
