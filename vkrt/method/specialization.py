"""Which sizes a load compiles into its pipelines."""

from __future__ import annotations

from typing import Any

from vkrt.device.policy import policy_of
from vkrt.plan.kernels import Specialization
from vkrt.plan.options import LoadOptions


def specialization_of(info: Any, options: LoadOptions) -> Specialization:
    """What the options and the driver's profile say; `info` is a `vkrt.DeviceInfo`."""
    return Specialization(options.specialize, policy_of(info).specialize)
