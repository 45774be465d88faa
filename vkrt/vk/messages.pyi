from typing import NamedTuple

class Finding(NamedTuple):
    id: str
    error: bool
    times: int
    text: str

def validation_messages() -> list[str]: ...
def validation_findings() -> list[Finding]: ...
def clear_validation_messages() -> None: ...
