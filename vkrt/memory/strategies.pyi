STRATEGIES: tuple[str, ...]
