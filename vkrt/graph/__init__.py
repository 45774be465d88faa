"""From a program's description to its work list: tensors, graph, records and the memory plan.

Nothing here knows Vulkan; everything runs without a driver.
"""
