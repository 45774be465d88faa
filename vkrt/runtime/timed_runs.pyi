from collections.abc import Callable
from typing import Any

from vkrt.executable.records import ExecutionPlan
from vkrt.runtime.compute_graph import ComputeGraph

def time_runs(graph: ComputeGraph, plan: ExecutionPlan, write_inputs: Callable[[], None],
              run_kernel: Callable[[str, tuple[Any, ...], tuple[Any, ...]], None],
              on_device: bool, repeat: int,
              ) -> list[tuple[float, float, list[tuple[float, float]]]]: ...
