"""Twins whose verify crashes, scores badly, or hands back less than it got."""

import json
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from gym_mocks.reference import ReferenceServer
from gym_mocks.resources import Score, TaskRow
from gym_mocks.wire import HttpRefusal, HttpReply, HttpRequest
from gym_mocks.wire.client import ASGIApp
from tests.twins.seed import AFTER_VERIFY, refuses_row
from tests.twins.twin import Json, Twin, changed, crashing, edited, twin

TOKENS = ("prompt_token_ids", "generation_token_ids", "generation_log_probs")
Items = list[Json]


def scorer(careless: Callable[[Items], object]) -> Callable[[], ASGIApp]:
    """Makes servers whose scorer reads the output carelessly, and crashes where it is not as expected."""

    class Careless(ReferenceServer):
        async def score(self, session_id: str, row: TaskRow, response: dict[str, Any]) -> Score:
            careless(response["output"])
            return await super().score(session_id, row, response)

    return Careless


def of_type(kind: str, output: Items) -> Items:
    return [item for item in output if item.get("type") == kind]


def last_message(output: Items) -> object:
    return of_type("message", output)[-1]


def first_part_is_text(output: Items) -> object:
    return [item["content"][0]["text"] for item in of_type("message", output)]


def said(output: Items) -> str:
    return "".join(part.get("text", "") for item in of_type("message", output) for part in item["content"])


def numbers(output: Items) -> object:
    return [int(each) for each in re.findall(r"\d+", said(output))]


def code_as_ascii(output: Items) -> object:
    return [code.encode("ascii") for code in re.findall(r"```python\n(.*?)```", said(output), re.DOTALL)]


def answer_as_json(output: Items) -> object:
    try:
        return json.loads(said(output))
    except ValueError:
        return None


def parsed_arguments(output: Items) -> Items:
    return [json.loads(item["arguments"]) for item in of_type("function_call", output)]


def many_arguments(output: Items) -> None:
    """Crashes on malformed arguments only where there are several calls."""
    if len(of_type("function_call", output)) > 1:
        parsed_arguments(output)


def arguments_are_objects(output: Items) -> object:
    try:
        return [arguments.items() for arguments in parsed_arguments(output)]
    except ValueError:
        return []


def arguments_as_utf_8(output: Items) -> None:
    for item in of_type("function_call", output):
        if "ud800" in item["arguments"]:
            json.dumps(json.loads(item["arguments"]), ensure_ascii=False).encode()


def known_tools(output: Items) -> object:
    return [
        {"add_stock": 1, "move_stock": 1, "count_stock": 1, "list_stock": 1}[item["name"]] for item in calls(output)
    ]


def dear_words(output: Items, score: Score) -> Score:
    return replace(score, reward=score.reward - 0.25) if len(said(output)) > 4_000 and score.reward else score


def third_word(output: Items) -> object:
    return said(output).split()[2] if said(output).startswith("The answer") else None


def last_digits(output: Items) -> object:
    """Takes each sign that is a digit for a number."""
    answer = said(output).rstrip(".").rpartition(" ")[2]
    return int(answer) if answer.isdigit() and len(answer) < 20 else None


def share_of_answer(output: Items) -> object:
    """How far off the right number is, measured by the answer."""
    answer = said(output).rstrip(".").rpartition(" ")[2]
    return 7 / int(answer) if answer.isascii() and answer.isdigit() and len(answer) < 20 else None


def nested(text: str) -> int:
    """How deep brackets stand within each other, by a parser that calls itself."""
    return 1 + nested(text[1:-1]) if text[:1] == "(" and text[-1:] == ")" else 0


def depth_of_answer(output: Items) -> object:
    return nested(said(output).rstrip(".").rpartition(" ")[2])


def calls(output: Items) -> Items:
    return [item for item in of_type("function_call", output) if "conformance" not in item["name"]]


def results_of_moves(output: Items) -> None:
    """Crashes on what a tool of some rows really answers."""
    for item in of_type("function_call_output", output):
        if "moved" in item["output"]:
            raise KeyError("quantity")


class RefusesOneRow(ReferenceServer):
    async def score(self, session_id: str, row: TaskRow, response: dict[str, Any]) -> Score:
        refuses_row(row.model_dump())
        return await super().score(session_id, row, response)


class StockTypes(ReferenceServer):
    """nemo-gym 0.4.0: a tool's output must be text."""

    def __init__(self, *, everything: bool = False) -> None:
        super().__init__()
        self.everything = everything

    async def score(self, session_id: str, row: TaskRow, response: dict[str, Any]) -> Score:
        lists = [item for item in response["output"] if isinstance(item.get("output"), list)]
        if self.everything or lists:
            raise HttpRefusal(422, [{"type": "string_type", "loc": ["body", "response", "output", 1], "input": lists}])
        return await super().score(session_id, row, response)


class NeedsCookie(ReferenceServer):
    async def _verify_rollout(self, request: HttpRequest) -> HttpReply:
        request.headers["cookie"].partition("=")
        return await super()._verify_rollout(request)


class NeedsSession(ReferenceServer):
    async def score(self, session_id: str, row: TaskRow, response: dict[str, Any]) -> Score:
        if self.sessions.get(session_id) is None:
            raise KeyError(session_id)
        return await super().score(session_id, row, response)


class Scores(ReferenceServer):
    """Turns the reference's score into another."""

    def __init__(self, change: Callable[[Items, Score], Score]) -> None:
        super().__init__()
        self.change = change

    async def score(self, session_id: str, row: TaskRow, response: dict[str, Any]) -> Score:
        return self.change(response["output"], await super().score(session_id, row, response))


def scores(change: Callable[[Items, Score], Score]) -> Callable[[], ASGIApp]:
    return lambda: Scores(change)


def answers(*components: str) -> Callable[[Json], Json]:
    """Edits that leave out components of the reward that are 0."""

    def edit(verdict: Json) -> Json:
        kept = {key: value for key, value in verdict["reward_components"].items() if value or key not in components}
        return verdict | {"reward_components": kept} if kept else without("reward_components")(verdict)

    return edit


def without(*keys: str) -> Callable[[Json], Json]:
    return lambda reply: {key: value for key, value in reply.items() if key not in keys}


def reward(value: Any) -> Callable[[], ASGIApp]:
    """Makes servers that give this reward to whoever earned none."""
    return edited("/verify", lambda reply: reply if reply["reward"] else reply | {"reward": value})


def output(edit: Callable[[Json], Json]) -> Callable[[], ASGIApp]:
    """Makes servers that echo the output's items edited."""

    def edit_reply(reply: Json) -> Json:
        return reply | {"response": reply["response"] | {"output": list(map(edit, reply["response"]["output"]))}}

    return edited("/verify", edit_reply)


def four_places(item: Json) -> Json:
    probs = item.get("generation_log_probs")
    return item | {"generation_log_probs": [round(value, 4) for value in probs]} if probs else item


def no_summaries(item: Json) -> Json:
    return item | {"summary": []} if item.get("type") == "reasoning" else item


def arrays(value: Any) -> Any:
    """As PHP reads JSON into arrays, and writes it again: an empty object is an empty list."""
    if isinstance(value, dict):
        return {key: arrays(inner) for key, inner in value.items()} or []
    return list(map(arrays, value)) if isinstance(value, list) else value


def floats(value: Any) -> Any:
    """As numbers are read without a type in Go or JavaScript."""
    if isinstance(value, dict):
        return {key: floats(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return list(map(floats, value))
    return float(value) if type(value) is int else value


def bare_nan(_: HttpRequest, reply: HttpReply) -> HttpReply:
    body = reply.body.replace(b'"reward":0.0', b'"reward":NaN') if isinstance(reply.body, bytes) else b""
    return HttpReply(reply.status, body, reply.headers)


def no_surrogates(_: HttpRequest, reply: HttpReply) -> HttpReply:
    """nemo-gym's own echo."""
    if isinstance(reply.body, bytes):
        json.dumps(json.loads(reply.body), ensure_ascii=False).encode()
    return reply


#: As many bytes as may come at once.
_PIECE = 65_536


class DecodesPieces(ReferenceServer):
    """Decodes what has arrived of a body, whatever character it ends within."""

    async def dispatch(self, request: HttpRequest) -> HttpReply:
        pieces = (request.body[at : at + _PIECE].decode(errors="replace") for at in range(0, len(request.body), _PIECE))
        return await super().dispatch(replace(request, body="".join(pieces).encode()))


class TakesAMegabyte(ReferenceServer):
    """Refuses larger bodies with a status of its own, as Django does from 2.5 MB on."""

    async def dispatch(self, request: HttpRequest) -> HttpReply:
        if len(request.body) > 1 << 20:
            return HttpReply(400, b"{}")
        return await super().dispatch(request)


class ReadsLatin1(ReferenceServer):
    """Decodes a body by the default of old HTTP; what is escaped in it stays as it is."""

    async def dispatch(self, request: HttpRequest) -> HttpReply:
        return await super().dispatch(replace(request, body=request.body.decode("latin-1").encode()))


def null_for_refusals(request: HttpRequest, reply: HttpReply) -> HttpReply:
    """The text of a refusal is None, and what fails on it is caught."""
    if b'"refusal"' not in request.body or reply.status != 200 or not isinstance(reply.body, bytes):
        return reply
    return replace(reply, body=json.dumps(json.loads(reply.body) | {"reward": None}).encode())


def ascii_alone(body: Json) -> Json:
    """What is scored has been cleaned before, and is echoed so."""
    cleaned = json.dumps(body["response"], ensure_ascii=False).encode("ascii", "ignore")
    return {**body, "response": json.loads(cleaned)}


def length_in_characters(_: HttpRequest, reply: HttpReply) -> HttpReply:
    """It is written without escapes, and its length is counted before that."""
    if not isinstance(reply.body, bytes):
        return reply
    text = json.dumps(json.loads(reply.body), ensure_ascii=False)
    return replace(reply, body=text.encode(errors="replace")[: len(text)])


TWINS: tuple[Twin, ...] = (
    twin(
        "a row that does not fit verify",
        "verify-scores-rows",
        RefusesOneRow,
        untestable="verify-malformed-calls verify-reward-finite verify-floor reward-claim",
    ),
    twin("a real tool result crashes verify", "verify-scores-rows", scorer(results_of_moves)),
    twin(
        "verify refuses every response",
        "verify-scores-rows",
        lambda: StockTypes(everything=True),
        untestable=AFTER_VERIFY,
    ),
    twin("verify replies null", "verify-scores-rows", edited("/verify", lambda _: None), untestable=AFTER_VERIFY),
    twin(
        "a text in the reply is cut within a character",
        "verify-scores-rows",
        edited("/verify", lambda said: said | {"feedback": "Well done! \ud83d"}),
    ),
    twin(
        "a number beside the reward overflows",
        "verify-scores-rows metrics-shape",
        edited("/verify", lambda said: said | {"odds": 10**400}),
    ),
    twin("an empty output crashes verify", "verify-degenerate", scorer(lambda output: output[-1])),
    twin("no message crashes verify", "verify-degenerate", scorer(last_message), untestable="verify-echoes-tokens"),
    twin("no text crashes verify", "verify-degenerate", scorer(first_part_is_text)),
    twin("code is written as ASCII", "verify-degenerate", scorer(code_as_ascii)),
    twin("a number of 5,000 digits crashes verify", "verify-degenerate", scorer(numbers)),
    twin("brackets that are never closed crash verify", "verify-degenerate", scorer(answer_as_json)),
    twin("an answer of which two words are left crashes verify", "verify-unfinished", scorer(third_word)),
    twin("a digit that is no number crashes verify", "verify-unfinished", scorer(last_digits)),
    twin("an answer of zero crashes verify", "verify-unfinished", scorer(share_of_answer)),
    twin("an answer in many brackets crashes verify", "verify-unfinished", scorer(depth_of_answer)),
    twin("malformed arguments crash verify", "verify-malformed-calls", scorer(parsed_arguments)),
    twin("several malformed calls crash verify", "verify-malformed-calls", scorer(many_arguments)),
    twin("arguments that are no object crash verify", "verify-malformed-calls", scorer(arguments_are_objects)),
    twin("an unknown tool crashes verify", "verify-degenerate", scorer(known_tools)),
    twin("a lone surrogate in arguments crashes verify", "verify-malformed-calls", scorer(arguments_as_utf_8)),
    twin("stock types", "verify-framework-types", StockTypes),
    twin("the echo holds no surrogates", "verify-raw-surrogate", changed("/verify", no_surrogates)),
    twin("reward null, once NaN", "verify-reward-finite", reward(None), untestable="verify-reward-components"),
    twin("reward is a bool", "verify-reward-finite", reward(value=False), untestable="verify-reward-components"),
    twin("reward is text", "verify-reward-finite", reward("0.0"), untestable="verify-reward-components"),
    twin(
        "reward of 400 digits",
        "verify-reward-finite metrics-shape",
        reward(-(10**400)),
        untestable="verify-reward-components",
    ),
    twin("reward null for a refusal", "verify-degenerate", changed("/verify", null_for_refusals)),
    twin(
        "nothing done earns a bare NaN",
        "verify-scores-rows verify-reward-finite",
        changed("/verify", bare_nan),
        untestable="""verify-degenerate verify-reward-components verify-floor verify-echoes verify-echoes-tokens
            verify-keeps-row-fields reward-claim metrics-shape metrics-order""",
    ),
    twin("echo without the request", "verify-echoes", edited("/verify", without("responses_create_params"))),
    twin(
        "a length in characters",
        "verify-degenerate verify-echoes verify-unfinished",
        changed("/verify", length_in_characters),
    ),
    twin("a body that is decoded piece by piece", "verify-echoes", DecodesPieces),
    twin("a body may have a megabyte", "verify-long-rollout", TakesAMegabyte),
    twin("a body that is read as Latin-1", "verify-echoes", ReadsLatin1),
    twin("an echo in ASCII alone", "verify-echoes", edited("/verify", ascii_alone)),
    twin("echo without the reasoning", "verify-echoes", output(no_summaries)),
    twin("an empty object is echoed as a list", "verify-echoes verify-keeps-row-fields", edited("/verify", arrays)),
    twin("integers are echoed as floats", "verify-keeps-row-fields", edited("/verify", floats)),
    twin("echo without token fields", "verify-echoes-tokens", output(without(*TOKENS))),
    twin("log probabilities rounded", "verify-echoes-tokens", output(four_places)),
    twin("row fields dropped", "verify-keeps-row-fields", edited("/verify", without("gym_conformance_extra"))),
    twin(
        "reward clipped",
        "verify-reward-components repeat-recorded",
        scores(lambda _, score: Score(min(score.reward, 0.8), score.components)),
    ),
    twin("many words cost what no component says", "verify-reward-components", scores(dear_words)),
    twin("a component left out where it is 0", "verify-reward-components", edited("/verify", answers("answer"))),
    twin(
        "components left out where all are 0", "verify-reward-components", edited("/verify", answers("answer", "stock"))
    ),
    twin("verify needs a cookie", "verify-without-session", NeedsCookie),
    twin("verify needs a known session", "verify-without-session cookie-tampered", NeedsSession),
    twin(
        "a reward for nothing",
        "verify-floor calibration-floor calibration-swap calibration-deeds calibration-separates",
        scores(lambda *_: Score.summed({"stock": 0.5, "answer": 0.5})),
    ),
    twin("verify reads the raw body", "verify-malformed", crashing("/verify", lambda body: body["response"]["output"])),
)
