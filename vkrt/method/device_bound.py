"""DeviceBound: the base of objects that live on a device of this process and cannot be copied."""

from __future__ import annotations

from typing import NoReturn


class DeviceBound:
    """Refuses to be serialized and copied: it holds handles of a device of this process."""

    def __reduce__(self) -> NoReturn:
        raise TypeError(f"a {type(self).__name__} cannot be copied or sent to another process, "
                        "because it is on a device of this one: pass the path of the .pte file, "
                        "and call vkrt.load there (what a state holds: State.save and load)")
