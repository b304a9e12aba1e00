"""Why a server cannot be judged as launched."""

from gym_conformance.redaction import NO_SECRETS, Secrets

#: Characters of what is needed.
_LONGEST = 1_000


class NotLaunched(Exception):
    """The server cannot be judged as launched: `needs` says what is missing, `log` is what it printed last.

    `credentials` are the fields of its config that it lacks, if those are all.
    """

    def __init__(
        self,
        needs: str,
        log: tuple[str, ...] = (),
        secrets: Secrets = NO_SECRETS,
        credentials: tuple[str, ...] = (),
    ) -> None:
        self.needs = secrets.show(needs, _LONGEST)
        self.log = log
        self.credentials = credentials
        super().__init__(self.needs)
