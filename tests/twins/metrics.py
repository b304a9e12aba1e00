"""Twins whose metrics fail at the very end of a collection."""

from gym_mocks.reference import ReferenceServer
from gym_mocks.wire import HttpReply, HttpRequest, json_body
from tests.twins.twin import Json, Twin, crashing, edited, twin

PATH = "/aggregate_metrics"


def mean(body: Json) -> float:
    rewards: list[float] = [verdict["reward"] for verdict in body["verify_responses"]]
    return sum(rewards) / len(rewards)


class LastReward(ReferenceServer):
    """A headline that is the reward of whichever rollout came last."""

    async def _aggregate_metrics(self, request: HttpRequest) -> HttpReply:
        verdicts = json_body(request)["verify_responses"]
        last = {"final_reward": verdicts[-1]["reward"]} if verdicts else {}
        return HttpReply.json({"group_level_metrics": [], "agent_metrics": last, "key_metrics": last})


TWINS: tuple[Twin, ...] = (
    twin(
        "metrics read a field that verify does not give",
        "metrics-shape",
        crashing(PATH, lambda body: [verdict["accuracy"] for verdict in body["verify_responses"]]),
    ),
    twin("groups are an object", "metrics-shape", edited(PATH, lambda reply: reply | {"group_level_metrics": {}})),
    twin("key metrics are a list", "metrics-shape", edited(PATH, lambda reply: reply | {"key_metrics": []})),
    twin("metrics divide by zero", "metrics-empty", crashing(PATH, mean)),
    twin("metrics of the last reply", "metrics-order", LastReward),
)
