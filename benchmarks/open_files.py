"""How many files the benchmarks may open: each connection is one at both ends."""

import resource

WANTED = 65_535


def raised() -> str:
    """Raise the soft limit as far as the hard one allows; what came of it, in words."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    limit = WANTED if hard == resource.RLIM_INFINITY else min(hard, WANTED)
    if limit <= soft:
        short = f"; {WANTED} are wanted, and the hard limit is {hard}" if soft < WANTED else ""
        return f"open files: {soft}{short}"
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))
    except (OSError, ValueError) as error:
        return f"open files: {soft}, and the limit cannot be raised to {limit}: {error}"
    return f"open files: {limit} (were {soft})"
