"""nemo-gym's own helper for typed sessions and our checks agree on every twin that the helper can see."""

import pytest
from nemo_gym.base_resources_server import ResourcesSeedSessionRequest
from nemo_gym.episode_types import EpisodeId, TaskId
from nemo_gym.testing.session_conformance import check_resources_session_contract

from tests.twins.judging import judge, telling
from tests.twins.twin import Twin, dataset, lines
from tests.twins.typed import TWINS

pytestmark = [pytest.mark.nemo_gym, pytest.mark.filterwarnings("ignore")]

#: The helper sends requests one after the other, looks at no cookie, calls no tool and knows one episode.
UNSEEN = {
    *("typed: no cookie", "typed: a repeated seed starts anew", "typed: another episode is let in"),
    *("typed: a refusal crashes", "typed: a close trips over a call", "typed: a race for the session"),
    *("typed: unknown keys are taken", "typed: ids are trimmed"),
}


def objects(app: object) -> bool:
    """Whether the helper finds a fault."""
    row = dict(lines(dataset().rows[0].source.path)[2])
    del row["responses_create_params"]
    seed = ResourcesSeedSessionRequest(
        resources_session_id="session",
        episode_id=EpisodeId(rollout_id="r1"),
        task_id=TaskId(taskset="t", task_id="1"),
        task_data=row,
    )
    try:
        check_resources_session_contract(app, seed, keeps_state=True)
    except (AssertionError, ValueError):  # a reply of another shape is a ValidationError
        return True
    return False


@pytest.mark.parametrize("twin", TWINS, ids=lambda twin: twin.name.replace(" ", "-"))
def test_it_and_we_agree(twin: Twin) -> None:
    checks = sorted(check for check in ("typed-seed", "typed-seed-repeat", "typed-close", "typed-close-final"))
    ours = telling(judge(twin.make(), twin.data, checks=checks))
    assert objects(twin.make()) == (bool(ours) and twin.name not in UNSEEN)
    assert bool(twin.fails) or not ours
