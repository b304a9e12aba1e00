"""What a judge model is asked, and what is made of its answer: twins that each one check sees, and fair servers."""

import json
import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from secrets import token_hex
from typing import Any

import httpx
import pytest

from gym_conformance.calibration.prompt_places import VerdictWords, parts_of, verdicts
from gym_conformance.checks.registry import JUDGE_MODELS
from gym_conformance.findings import Finding, Verdict
from gym_conformance.plugin.mocks import MockPeers
from gym_conformance.trials.launched import JudgeModels, Launched
from gym_mocks.resources import ResourcesServer, Score, TaskRow, last_text
from tests.twins.calibration import quizzed
from tests.twins.judging import running, telling

OF_PROMPTS = [check for check in JUDGE_MODELS if check.id.startswith(("judge-prompt-", "judge-verdict-"))]

#: Makes what the judge model is asked from the policy's text, and reads its answer.
Asks = Callable[[str], dict[str, Any]]
Reads = Callable[[str], bool]

RULES = "Say whether the answer is right. End with `Verdict: YES` or `Verdict: NO`."


def in_json(text: str) -> dict[str, Any]:
    return {"input": f"{RULES}\nThe answer: {json.dumps(text)}\nRemember the form."}


def in_random_delimiters(text: str) -> dict[str, Any]:
    edge = token_hex(6)
    return {"input": f"{RULES}\n<{edge}>\n{text}\n</{edge}>\nRemember the form."}


def cleaned(text: str) -> dict[str, Any]:
    return {"input": f"{RULES}\n<answer>\n{text.replace('</answer>', '')}\n</answer>\nRemember the form."}


def at_the_end(text: str) -> dict[str, Any]:
    return {"messages": [{"role": "system", "content": RULES}, {"role": "user", "content": f"The answer:\n{text}"}]}


def in_plain_delimiters(text: str) -> dict[str, Any]:
    return {"input": f"{RULES}\n<answer>\n{text}\n</answer>\nRemember the form."}


def in_instructions(text: str) -> dict[str, Any]:
    return {"instructions": f"{RULES} The answer is: {text}", "input": "Decide."}


def last(said: str) -> bool:
    return re.findall(r"Verdict: (YES|NO)", said)[-1:] == ["YES"]


def first(said: str) -> bool:
    return re.findall(r"Verdict: (YES|NO)", said)[:1] == ["YES"]


def anywhere(said: str) -> bool:
    return "Verdict: YES" in said


def whole(said: str) -> bool:
    return said == "Verdict: YES"


class Judged(ResourcesServer):
    """Hands the policy's last words to a judge model, and pays what that says."""

    def __init__(self, mocks: MockPeers, asks: Asks, reads: Reads) -> None:
        super().__init__("judged", verify=lambda: 0.0)
        host, port = mocks.addresses.policy
        self.model, self.asks, self.reads = f"http://{host}:{port}/v1/", asks, reads

    async def score(self, _: str, __: TaskRow, response: dict[str, Any]) -> Score:
        body = self.asks(last_text(response["output"]))
        chat = "messages" in body
        async with httpx.AsyncClient(timeout=10, verify=False) as client:  # noqa: S501 - loopback, and quicker
            reply = (await client.post(self.model + ("chat/completions" if chat else "responses"), json=body)).json()
        said = reply["choices"][0]["message"]["content"] if chat else reply["output"][0]["content"][0]["text"]
        return Score(float(self.reads(said)))


@pytest.fixture(scope="module")
def mocks() -> Iterator[MockPeers]:
    with ExitStack() as started:
        yield MockPeers(started)


def judge(mocks: MockPeers, asks: Asks, reads: Reads) -> dict[str, list[Finding]]:
    with running(
        Judged(mocks, asks, reads), quizzed(), launched=Launched(judge_models=JudgeModels(("judge",), mocks))
    ) as run:
        return {check.id: run.judge(check) for check in OF_PROMPTS}


@pytest.mark.parametrize(
    ("asks", "reads", "told"),
    [
        (in_instructions, last, "judge-prompt-role"),
        (in_plain_delimiters, last, "judge-prompt-delimiters"),
        (in_json, anywhere, "judge-verdict-quoted"),
        (in_json, first, "judge-verdict-first"),
        (in_json, last, ""),
        (in_json, whole, ""),
        (in_random_delimiters, last, ""),
        (cleaned, last, ""),
        (at_the_end, last, ""),
    ],
)
def test_a_twin_is_seen_by_its_own_check_alone(asks: Asks, reads: Reads, told: str, mocks: MockPeers) -> None:
    found = judge(mocks, asks, reads)
    assert telling(found) == {told} - {""}, found
    assert {one.verdict for each in found.values() for one in each} <= {Verdict.PASS, Verdict.FAIL, Verdict.NOTE}
    for finding in found.get(told, ()):
        assert "in 3 of 3 rows, such as example.jsonl:1" in finding.actual
        assert finding.reproduce


def test_a_judge_that_is_shown_nothing_of_the_policy_s_is_not_judged(mocks: MockPeers) -> None:
    found = judge(mocks, lambda _: {"input": "Is it right? YES or NO"}, last)
    assert {one.verdict for each in found.values() for one in each} == {Verdict.NOT_APPLICABLE}


@pytest.mark.parametrize(
    ("prompt", "words"),
    [
        ("End with [[A=B]] or [[A!=B]].", VerdictWords("[[A=B]]", "[[A!=B]]")),
        ("Judgement: Yes or Judgement: No", VerdictWords("Judgement: Yes", "Judgement: No")),
        ("Judgement: Yes/No", VerdictWords("Judgement: Yes", "Judgement: No")),
        (
            "<verdict>PASS</verdict> or <verdict>FAIL</verdict>",
            VerdictWords("<verdict>PASS</verdict>", "<verdict>FAIL</verdict>"),
        ),
        ("Just say A (right) or B (wrong).", VerdictWords("A", "B")),
    ],
)
def test_a_verdict_is_written_as_the_prompt_has_it(prompt: str, words: VerdictWords) -> None:
    assert next(verdicts(prompt)) == words


def test_a_prompt_is_read_by_any_api() -> None:
    bodies: list[dict[str, Any]] = [
        {"instructions": "a", "input": [{"role": "user", "content": [{"type": "input_text", "text": "b"}]}]},
        {"messages": [{"role": "system", "content": "a"}, {"role": "user", "content": "b"}]},
        {"system": [{"type": "text", "text": "a"}], "messages": [{"role": "user", "content": "b"}]},
    ]
    for body in bodies:
        assert [(part.role, part.text) for part in parts_of(body)] == [("system", "a"), ("user", "b")]
    assert [part.text for part in parts_of({"input": "a"})] == ["a"]
    assert not list(parts_of({"input": [1, {"content": 3}]}))
