"""Names of the ways in which a file's bytes come into memory; the core has the ways."""

from vkrt.core.strategies cimport STRATEGY_AUTO, strategy_name

# Besides "auto", in the order of the core's numbers.
STRATEGIES = tuple([strategy_name(number).decode() for number in range(STRATEGY_AUTO + 1, 32)
                    if strategy_name(number) != NULL])
