"""Comparisons with tensors and numbers, logic."""

import math
from functools import partial

import numpy as np
from harness import Sample, booleans, integers, normal

COMPARISONS = {"eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal,
               "gt": np.greater, "ge": np.greater_equal}
LOGIC = {"and": np.logical_and, "or": np.logical_or, "xor": np.logical_xor}
BITS = {"and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor}

SPECIAL = np.array([0, 1, -1, math.inf, -math.inf, math.nan, 2.5], np.float32)
INT_ENDS = np.array([-2**31, 1 - 2**31, -1, 0, 2**31 - 2, 2**31 - 1], np.int32)


bool_sample = partial(Sample, dtype="bool")

SAMPLES = [
    *(bool_sample(f"aten.{name}.Tensor", [np.round(normal(2, 6, 5, 7)),
                                          np.round(normal(6, 1, 1, seed=1))], function)
      for name, function in COMPARISONS.items()),
    *(bool_sample(f"aten.{name}.Tensor", [integers(3, 70, high=0), integers(70, high=0, seed=1)],
                  function, name="int32") for name, function in COMPARISONS.items()),
    bool_sample("aten.le.Tensor", [np.round(normal(3, 5, 8)), np.round(normal(8, seed=1))],
                np.less_equal, name="whole"),
    bool_sample("aten.ne.Scalar", [np.round(normal(3, 5, 8)), 1], np.not_equal, name="whole"),
    bool_sample("aten.eq.Tensor", [booleans(3, 9), booleans(9, seed=1)], np.equal, name="bool"),
    bool_sample("aten.ne.Tensor", [SPECIAL, SPECIAL], np.not_equal, name="special"),
    *(bool_sample(f"aten.{name}.Scalar", [np.append(normal(3, 5, 9), SPECIAL), number], function,
                  name=str(number))
      for name, function in COMPARISONS.items() for number in (0, 2.5, -math.inf, math.inf)),
    *(bool_sample(f"aten.{name}.Scalar", [integers(3, 5, 9), number], function,
                  name=f"int32 {number}")
      for name, function in COMPARISONS.items() for number in (-3, 2.5, -math.inf, math.inf)),
    *(bool_sample(f"aten.{name}.Scalar", [INT_ENDS, number], function, name=f"int32 ends {number}")
      for name, function in COMPARISONS.items()
      for number in (-2**31, 2**31 - 1, -math.inf, math.nan)),
    bool_sample("aten.eq.Scalar", [booleans(3, 9), 0], np.equal, name="bool"),
    bool_sample("aten.gt.Scalar", [booleans(3, 9), -1], np.greater, name="bool"),
    *(bool_sample(f"aten.{name}.default", [x], function, name=str(x.dtype))
      for name, function in (("isnan", np.isnan), ("isinf", np.isinf))
      for x in (np.append(normal(3, 5, 9), SPECIAL), INT_ENDS, booleans(3, 9))),
    *(bool_sample(f"aten.logical_{name}.default", [booleans(2, 5, 6, 7),
                                                   booleans(5, 1, 7, seed=1)], function)
      for name, function in LOGIC.items()),
    bool_sample("aten.logical_and.default", [np.round(normal(5, 9)), np.round(normal(9))],
                np.logical_and, name="float"),
    *(bool_sample(f"aten.bitwise_{name}.Tensor", [booleans(5, 9), booleans(5, 9, seed=1)],
                  function) for name, function in BITS.items()),
    *(Sample(f"aten.bitwise_{name}.Tensor", [integers(5, 9), integers(5, 9, seed=1)], function,
             name="int32") for name, function in BITS.items()),
    bool_sample("aten.logical_not.default", [booleans(3, 5, 6)], np.logical_not),
    bool_sample("aten.logical_not.default", [np.round(normal(3, 5, 6))], np.logical_not,
                name="float"),
    bool_sample("aten.bitwise_not.default", [booleans(3, 5)], np.logical_not),
]
