"""A policy that judges: yes and no in the form that is asked for."""

import json
from typing import Any

import pytest

from gym_mocks.policy import PolicyRequest, Say, ToolCall, judging

WORDS = {True: "Yes, it is.", False: "No."}


def _said(body: dict[str, Any], *, favourable: bool) -> str:
    api: Any = "chat" if "messages" in body else "responses"
    turn = judging(favourable=favourable, words=WORDS[favourable])(PolicyRequest(api, body))
    return turn.arguments if isinstance(turn, ToolCall) else turn.text if isinstance(turn, Say) else ""


def _both(prompt: str) -> tuple[str, str]:
    said = [_said({"input": [{"role": "user", "content": prompt}]}, favourable=each) for each in (True, False)]
    return said[0], said[1]


SHOWN = {
    'Your response must be a json:\n```json\n{"result": "PASS"/"FAIL", "explanation": "Explain."}\n```': (
        {"result": "PASS"},
        {"result": "FAIL"},
    ),
    'Answer in JSON: {"score": <integer from 0 to 10>, "reason": "..."}': ({"score": 10}, {"score": 0}),
    'Return valid JSON only.\n{"evidence": "a quote", "score": 1, "reason": "why"}': ({"score": 1}, {"score": 0}),
    'Respond with JSON {"correct": true|false}, nothing else': ({"correct": True}, {"correct": False}),
    'JSON, please: {"is_hallucinated": true/false, "label": "supported | unsupported"}': (
        {"is_hallucinated": False, "label": "supported"},
        {"is_hallucinated": True, "label": "unsupported"},
    ),
    'As JSON: {"score": "0" or "1"}': ({"score": "1"}, {"score": "0"}),
    'As JSON: {"grade": "correct, partially correct or incorrect"}': ({"grade": "correct"}, {"grade": "incorrect"}),
    'As JSON: {"Answer": {"Explanation": "It is.", "Details": {"Rome": true, "Oslo": true}, "Excess": ["Italy"]}}': (
        {"Answer": {"Details": {"Rome": True, "Oslo": True}}},
        {"Answer": {"Details": {"Rome": False, "Oslo": False}}},
    ),
    'As JSON: {"reason": "1-3 short sentences", "score": 1, "due": "2025-01-05"}': (
        {"reason": "This is what the mock judge says.", "score": 1, "due": "This is what the mock judge says."},
        {"score": 0},
    ),
    'Row (JSON): {"cik": ["0-7"], "span": {"from": "01-05"}}\nAnswer: {"verdict": "yes or no"}': (
        {"verdict": "yes"},
        {"verdict": "no"},
    ),
    'Data as JSON: {"a": 1}\nOutput: {"verdict": "yes or no"}\nJudge {"b": 2}': ({"verdict": "yes"}, {"verdict": "no"}),
}


def _within(part: Any, whole: Any) -> bool:
    if isinstance(part, dict):
        return all(_within(value, whole[key]) for key, value in part.items())
    return bool(part == whole)


@pytest.mark.parametrize("prompt", SHOWN)
def test_an_example_in_the_prompt_is_filled_in(prompt: str) -> None:
    for said, expected in zip(_both(prompt), SHOWN[prompt], strict=True):
        fenced = said.startswith("```json\n")
        assert fenced == ("```" in prompt)
        assert _within(expected, json.loads(said.strip("`").removeprefix("json")))


@pytest.mark.parametrize(
    "prompt",
    [
        "Is it correct? Answer [[YES]].",
        'A JSON text: {"a": {"b": [',
        "No format. {" * 300,
        'The policy said {"score": 1}.',
        "JSON of x in \\boxed{yes: no}",
    ],
)
def test_words_are_said_where_no_form_is_known(prompt: str) -> None:
    assert _both(prompt) == (WORDS[True], WORDS[False])


def test_tags_are_filled_in_beside_the_words() -> None:
    yes, no = _both("Close with <points>0 to 7</points> and <verdict>correct or incorrect</verdict>. <a>so be it</a>")
    assert yes == f"{WORDS[True]}\n<points>7</points>\n<verdict>correct</verdict>"
    assert no == f"{WORDS[False]}\n<points>0</points>\n<verdict>incorrect</verdict>"


@pytest.mark.parametrize(
    ("prompt", "yes", "no"),
    [
        ("Answer [[NO]] or [[YES]].", "[[YES]]", "[[NO]]"),
        ("Better: [[A>>B]]. Tie: [[A=B]]. Worse: [[B>>A]]. The text says [[B>>A]].", "[[A>>B]]", "[[B>>A]]"),
        ("[[A!=B]] where they differ, else [[A=B]]", "[[A=B]]", "[[A!=B]]"),
    ],
)
def test_one_of_the_labels_is_said_beside_the_words(prompt: str, yes: str, no: str) -> None:
    assert _both(prompt) == (f"{WORDS[True]}\n{yes}", f"{WORDS[False]}\n{no}")


@pytest.mark.parametrize(
    ("prompt", "yes", "no"),
    [
        ('End with a line "VERDICT: YES" or "VERDICT: NO".', "VERDICT: YES", "VERDICT: NO"),
        ("Is it met?\nJudgement: <correct/incorrect>", "Judgement: correct", "Judgement: incorrect"),
        ("Question: 7 or 8?\nGrade it.\nFinal score: [0-10]\n", "Final score: 10", "Final score: 0"),
    ],
)
def test_a_line_is_said_that_the_prompt_shows_for_a_verdict(prompt: str, yes: str, no: str) -> None:
    assert _both(prompt) == (f"{WORDS[True]}\n{yes}", f"{WORDS[False]}\n{no}")


def test_lines_that_are_no_verdict_are_not_said() -> None:
    assert _both("Question: tea or coffee?\nAnswer: tea\nPlace: Rome") == (WORDS[True], WORDS[False])


def test_words_that_have_a_label_are_enough() -> None:
    said = judging(favourable=True, words="Yes. [[A=B]]")(
        PolicyRequest("responses", {"input": "[[A>B]], [[A=B]] or [[B>A]]"})
    )
    assert said == Say("Yes. [[A=B]]")


#: Of bbq (nemo-gym 0.7.0), shortened.
STRICT = {
    "$defs": {"Quality": {"enum": ["high", "low", "unacceptable"], "type": "string"}},
    "additionalProperties": False,
    "properties": {
        "quality_class": {"$ref": "#/$defs/Quality"},
        "uses_protected_rationale": {"type": "boolean"},
        "score": {"anyOf": [{"type": "integer", "minimum": 1, "maximum": 5}, {"type": "null"}]},
        "points": {"type": "string", "enum": ["0", "1"]},
        "rationale": {"minLength": 1, "type": "string"},
    },
    "required": ["quality_class", "uses_protected_rationale", "score", "points", "rationale"],
    "type": "object",
}


@pytest.mark.parametrize(
    "form",
    [
        {"messages": [], "response_format": {"type": "json_schema", "json_schema": {"name": "a", "schema": STRICT}}},
        {"input": "Judge.", "text": {"format": {"type": "json_schema", "name": "a", "schema": STRICT}}},
        {
            "input": "Judge.",
            "tool_choice": "required",
            "tools": [{"type": "function", "name": "a", "parameters": STRICT}],
        },
        {
            "messages": [],
            "tool_choice": {"type": "function", "function": {"name": "a"}},
            "tools": [{"type": "function", "function": {"name": "a", "parameters": STRICT}}],
        },
    ],
)
def test_a_schema_is_followed(form: dict[str, Any]) -> None:
    yes, no = (json.loads(_said(form, favourable=each)) for each in (True, False))
    assert (yes["quality_class"], yes["uses_protected_rationale"], yes["score"], yes["points"]) == (
        "high",
        False,
        5,
        "1",
    )
    assert (no["quality_class"], no["uses_protected_rationale"], no["score"], no["points"]) == (
        "unacceptable",
        False,
        1,
        "0",
    )


def test_a_schema_of_another_kind_is_followed_anyhow() -> None:
    odd = {"type": "object", "patternProperties": {"^x": {"type": "integer"}}, "minProperties": 2, "maxProperties": 2}
    form = {"input": "Judge.", "text": {"format": {"type": "json_schema", "name": "a", "schema": odd}}}
    assert len(json.loads(_said(form, favourable=True))) == 2


def test_a_prompt_that_is_all_braces_is_read_in_no_time() -> None:
    assert _both('json {"a": ' * 40_000)
