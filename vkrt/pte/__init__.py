"""Bytes to description: reads `.pte` programs, their Vulkan delegates, and `.ptd` data files.

Pure Python over memoryviews. Results hold numbers, names and spans (offsets into the file), no
bytes of weights. Whatever the bytes are, only FormatError or UnsupportedError is raised.

`IntList` here is a delegate's list of literals; a program's list of value ids is `plan.IntList`.
"""

from vkrt.pte.coerce import as_bool, as_float, as_int, as_str
from vkrt.pte.container import Program, read_program
from vkrt.pte.delegate import (
    Constant,
    IntList,
    OperatorCall,
    SymInt,
    ValueList,
    VkGraph,
    VkTensor,
    read_delegate,
)
from vkrt.pte.dtype import ITEMSIZE
from vkrt.pte.external import External, ExternalData, read_external, read_externals
from vkrt.pte.instruction import (
    DelegateCall,
    FreeCall,
    Instruction,
    JumpFalseCall,
    KernelCall,
    MoveCall,
)
from vkrt.pte.plan import DelegateRef, ExecutionPlan, OptionalTensorList, TensorList, TensorMeta
from vkrt.pte.span import Span
from vkrt.pte.values import BoolList, DoubleList

__all__ = [
    "ITEMSIZE", "BoolList", "Constant", "DelegateCall", "DelegateRef", "DoubleList",
    "ExecutionPlan", "External", "ExternalData", "FreeCall", "Instruction", "IntList",
    "JumpFalseCall", "KernelCall", "MoveCall", "OperatorCall", "OptionalTensorList", "Program",
    "Span", "SymInt", "TensorList", "TensorMeta", "ValueList", "VkGraph", "VkTensor", "as_bool",
    "as_float", "as_int", "as_str", "read_delegate", "read_external", "read_externals",
    "read_program",
]
