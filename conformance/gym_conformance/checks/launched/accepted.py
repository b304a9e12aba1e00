"""What NeMo Gym says of the YAML of a server that the suite launches all the same."""

from gym_conformance.trials.check import check
from gym_conformance.trials.ending import NotApplicable, Violation
from gym_conformance.trials.trial import Trial


@check(
    "launch-accepted",
    "NeMo Gym MUST accept the env's YAML",
    why="`gym env start` starts none of its servers otherwise, and names the server at fault, but not always the key.",
)
async def launch_accepted(trial: Trial, _: object) -> None:
    """Reads what nemo-gym's own parser said of the servers in the YAML when the suite launched one of them.

    What it refuses of a data set, such as a licence that it does not know, keeps `gym env start` from starting anything,
    and no server reads it: the env is judged without.

    Source: `GlobalConfigDictParser.parse` in nemo_gym/global_config.py (0.7.0), `AlmostServerError`.
    """
    if not trial.launched.has_log:
        raise NotApplicable("it is known only for servers that the suite launches")
    if refused := trial.launched.refused:
        raise Violation(
            "a YAML that `gym env start` accepts",
            "; ".join(refused),
            "Change the value to one that NeMo Gym accepts; the server is judged as if its YAML named no data sets.",
        )
