"""Why a server cannot be judged as launched."""

from gym_conformance.redaction import NO_SECRETS, Secrets

#: Characters of what is needed.
_LONGEST = 1_000


class NotLaunched(Exception):
    """The server cannot be judged as launched: `needs` says what is missing, `log` is what it printed last.

    `credentials` are the fields of its config that it lacks, if those are all, and `variables` what it names that look
    like a credential's in the environment.
    """

    def __init__(
        self,
        needs: str,
        log: tuple[str, ...] = (),
        secrets: Secrets = NO_SECRETS,
        credentials: tuple[str, ...] = (),
        variables: tuple[str, ...] = (),
    ) -> None:
        self.needs = secrets.show(needs, _LONGEST)
        self.log = log
        self.credentials = credentials
        self.variables = variables
        super().__init__(self.needs)
