"""Messages of the validation layer, and of the loader and drivers while it is on.

Taking the GIL where they arrive could deadlock, so the core keeps them until they are asked for.
"""

from collections import namedtuple

from vkrt.core.messages cimport (
    MAX_MESSAGES, Message, clear_messages, hold_messages, let_messages_go,
)

# The messages with one id: the layer's name of what is wrong, whether the layer calls it an error
# (if not, it is a warning, or a word of the loader's), how often it came, and the first message.
Finding = namedtuple("Finding", ("id", "error", "times", "text"))


def kept_messages():
    """(id, whether it is an error, text) of each message that is kept, and how many came after."""
    cdef int message_count, lost
    cdef const Message* messages = hold_messages(&message_count, &lost)
    try:
        return [(messages[i].id.decode(errors="replace"), bool(messages[i].error),
                 messages[i].text.decode(errors="replace")) for i in range(message_count)], lost
    finally:
        let_messages_go()


def validation_messages():
    """Warnings and errors of the validation layer so far (the first 1000), as a list of str.

    Empty unless VKRT_VALIDATION=1 was set when the first device was opened. The first message of
    every id was also written to stderr when it came.
    """
    return [text for _, _, text in kept_messages()[0]]


def validation_findings():
    """The same by their ids, in the order of the first ones, as a list of `Finding`; what came
    after the first 1000 messages is one finding more."""
    messages, lost = kept_messages()
    found = {}
    for name, error, text in messages:
        first = found.get((name, error), Finding(name, error, 0, text))
        found[name, error] = first._replace(times=first.times + 1)
    if lost:
        found[None] = Finding("", False, lost, f"not kept: what came after {MAX_MESSAGES} messages")
    return list(found.values())


def clear_validation_messages():
    """Forgets the validation messages so far."""
    clear_messages()
