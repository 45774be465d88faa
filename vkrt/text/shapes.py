"""Which methods are language models, and the sizes of their inputs; for `vkrt info`, too, which
does without numpy."""

from __future__ import annotations

from vkrt.method.arguments import MethodMetadata

# The most tokens of a prompt that are read in one run, unless the caller says another number
CHUNK = 64


def is_text(metadata: MethodMetadata) -> bool:
    """Whether a method takes tokens, perhaps with a position, and gives logits."""
    kinds = [(info.dtype, len(info.sizes)) for info in metadata.inputs]
    logits = metadata.outputs[0] if metadata.outputs else None
    return (kinds in ([("int64", 2)], [("int64", 2), ("int64", 1)])
            and metadata.inputs[0].sizes[0] == 1
            and logits is not None and len(logits.sizes) in (2, 3))


def sizes_of(metadata: MethodMetadata, count: int) -> tuple[tuple[int, ...], ...]:
    """The sizes of the inputs of a method that takes so many tokens (`is_text`): one position, or
    one for each token."""
    return ((1, count), *((count if info.sizes[0] != 1 else 1,) for info in metadata.inputs[1:]))
