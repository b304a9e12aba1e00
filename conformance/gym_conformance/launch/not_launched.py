"""Why a server cannot be judged as launched."""

from gym_conformance.redaction import NO_SECRETS, Secrets

#: The most characters of `needs`.
_LONGEST = 1_000


class NotLaunched(Exception):
    """The server cannot be judged as launched: `needs` says what is missing, `log` holds its last output.

    `credentials` are the config fields that it lacks, if nothing else is missing; `variables` are the names in it that
    look like environment variables with credentials.
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
