from collections.abc import Sequence

from vkrt.executable.program import Compiled
from vkrt.executable.records import ExecutionPlan
from vkrt.executable.states import StatePlan
from vkrt.executable.weights import PrepackPlan, WeightPlan
from vkrt.work.tensor import Storage

class Rows:
    def __init__(self, storages: Sequence[Storage] | None = ...,
                 execution: ExecutionPlan | None = ..., weights: WeightPlan | None = ...,
                 states: StatePlan | None = ...,
                 prepack: PrepackPlan | None = ...) -> None: ...

def to_bytes(compiled: Compiled) -> bytes: ...
