"""What the policy may hand to verify: OpenAI Response objects, from plain to degenerate.

Source: `NeMoGymResponse` in nemo_gym/openai_utils.py (0.4.0); the degenerate forms are those that crashed real servers.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from gym_conformance.contract.dataset_rows import Row
from gym_conformance.contract.endpoints import TOKEN_FIELDS

Item = dict[str, Any]

#: Values that no server computes by chance: an echo that contains them is genuine. 32 bits hold the probabilities exactly,
#: so that only one that is rounded further comes back changed.
TOKEN_SENTINEL: Final[dict[str, Any]] = dict(
    zip(TOKEN_FIELDS, ([151644, 872, 198], [9707, 11, 1879, 0], [-0.0009765625, -1.5, -2.25, -0.0625]), strict=True)
)


#: A placeholder for a response's id, which its session replaces (`CookieSession.verify`).
UNNAMED: Final = "resp_conformance"


def response(output: Sequence[Item], **fields: Any) -> dict[str, Any]:
    """An OpenAI Response object with these output items; `fields` replace top-level ones."""
    return {
        "id": UNNAMED,
        "created_at": 1700000000.0,
        "model": "gym-conformance",
        "object": "response",
        "output": list(output),
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
    } | fields


def message(*texts: str) -> Item:
    """An assistant message with one text part for each text."""
    return {
        "id": "msg_conformance",
        "type": "message",
        "role": "assistant",
        "status": "completed",
        "content": [{"type": "output_text", "text": text, "annotations": []} for text in texts],
    }


def reasoning(text: str) -> Item:
    """A reasoning item."""
    return {"id": "rs_conformance", "type": "reasoning", "summary": [{"type": "summary_text", "text": text}]}


def function_call(name: str, arguments: str, call_id: str = "call_conformance") -> Item:
    """A tool call; `arguments` is the string that the model wrote, JSON or not."""
    return {"type": "function_call", "name": name, "arguments": arguments, "call_id": call_id}


def function_call_output(output: Any, call_id: str = "call_conformance") -> Item:
    """What the agent read from the tool: text, or in newer OpenAI types a list of parts."""
    return {"type": "function_call_output", "call_id": call_id, "output": output}


@dataclass(frozen=True)
class Degenerate:
    """A policy output that training meets sooner or later, however odd.

    Attributes:
        name: permanent; the finding's subject.
        items: the response's output.
        fields: top-level fields of the response that belong to it.
        stock: whether NeMo Gym's own types can read it. If not (0.4.0 answers 422 in every server), a refusal is the
            framework's fault and no MUST of the environment.
        row: the row that it answers; None if any will do.
    """

    name: str
    items: tuple[Item, ...]
    fields: Mapping[str, Any] = field(default_factory=dict)
    stock: bool = True
    row: Row | None = None

    def __str__(self) -> str:
        return self.name

    @property
    def response(self) -> dict[str, Any]:
        """The whole Response object."""
        return response(self.items, **self.fields)


DO_NOTHING: Final = Degenerate("a message that does nothing", (message("I am done."),))

#: The fields of an OpenAI Response (openai 2.44.0, `types/responses/response.py`).
RESPONSE_FIELDS: Final = frozenset(
    [
        "background",
        "completed_at",
        "conversation",
        "created_at",
        "error",
        "id",
        "incomplete_details",
        "instructions",
        "max_output_tokens",
        "max_tool_calls",
        "metadata",
        "model",
        "object",
        "output",
        "output_text",
        "parallel_tool_calls",
        "previous_response_id",
        "prompt",
        "prompt_cache_key",
        "prompt_cache_retention",
        "reasoning",
        "safety_identifier",
        "service_tier",
        "status",
        "temperature",
        "text",
        "tool_choice",
        "tools",
        "top_logprobs",
        "top_p",
        "truncation",
        "usage",
        "user",
    ]
)

_CUT_SHORT: Final = {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}
_REFUSAL: Final = message() | {"content": [{"type": "refusal", "refusal": "I cannot help with that."}]}
_SEARCH: Final = {
    "id": "ws_conformance",
    "type": "web_search_call",
    "status": "completed",
    "action": {"type": "search", "query": "x"},
}


LONG_TEXT: Final = "very long text"

#: Policies that fall into a loop write such numbers. Python parses no number of more than 4,300 digits, and no JSON
#: nested this deep.
EMPTY_TEXT: Final = "message with empty text"
LONG_NUMBER: Final = "number of 5,000 digits"
OPEN_BRACKETS: Final = "brackets that are never closed"
_DIGITS: Final = "7" * 5_000
_NESTED: Final = 20_000

#: A few characters that stand for three million digits, which take a second to print; many more would hold up what
#: follows.
HUGE_POWERS: Final = ("1e2999999", "10^{2999999}", "10**2999999")

#: Forms of answers that scorers look for.
_ANSWER_FORMS: Final = ("\\boxed{{{}}}\n", "<answer>{}</answer>\n", "#### {}\n", "The answer is {}")

#: Characters of two, three and four bytes in UTF-8.
_FOREIGN: Final = "\u00e9 \u6f22\u5b57 \U0001f642"

#: How many of an answer's last numbers are lengthened.
_LAST: Final = 3


def with_long_number(row: Row, text: str) -> Degenerate | None:
    """The row's answer with numbers of 5,000 digits in place of its last ones; None if it has none."""
    changed = with_last_numbers(text, _DIGITS)
    return Degenerate(f"{LONG_NUMBER}, as {row} is answered", (message(changed),), row=row) if changed else None


def with_last_numbers(text: str, number: str) -> str | None:
    """The text with this number in place of its last ones; None if it has none."""
    numbers = [*re.finditer(r"\d+", text)]
    if not numbers:
        return None
    begin = numbers[-_LAST:][0].start()
    return text[:begin] + re.sub(r"\d+", number, text[begin:])


def answered_in_every_form(number: str) -> str:
    """A text that gives this number in each form that scorers look for."""
    return "".join(form.format(number) for form in _ANSWER_FORMS)


def degenerate_outputs(tool: str) -> tuple[Degenerate, ...]:
    """The degenerate outputs, with calls of `tool` where they contain any."""
    return (
        Degenerate("empty output", ()),
        Degenerate("reasoning only", (reasoning("Let me think."),)),
        Degenerate("message without content", (message(),)),
        Degenerate(EMPTY_TEXT, (message(""),)),
        Degenerate("call without a final message", (function_call(tool, "{}"), function_call_output("{}"))),
        Degenerate("call of an unknown tool", (function_call("no_such_tool", "{}"), message("Done."))),
        Degenerate("text with an escaped lone surrogate", (message(r'{"answer": "\ud800"}'),)),
        Degenerate(
            "text that is not ASCII", (message(f"{answered_in_every_form(_FOREIGN)}\n```python\n# {_FOREIGN}\n```"),)
        ),
        Degenerate("text with NUL", (message("before\x00after"),)),
        Degenerate("text that only opens a box", (message(r"The answer is \boxed{"),)),
        Degenerate("refusal", (_REFUSAL,)),
        Degenerate("cut short", (message("The answer is"),), _CUT_SHORT),
        Degenerate("cut short while reasoning", (reasoning("Let me"),), _CUT_SHORT),
        Degenerate(LONG_TEXT, (message("word " * 40_000),)),
        Degenerate(LONG_NUMBER, (message(answered_in_every_form(_DIGITS)),)),
        Degenerate(OPEN_BRACKETS, (message("[" * _NESTED),)),
        Degenerate(
            "tool output that is a list",
            (
                function_call(tool, "{}"),
                function_call_output([{"type": "input_text", "text": "{}"}]),
                message("Done."),
            ),
            stock=False,
        ),
        Degenerate("hosted tool's item", (_SEARCH, message("Done.")), stock=False),
        Degenerate("item of an unknown type", ({"type": "no_such_item", "id": "x"}, message("Done.")), stock=False),
    )


#: Answers that stop in the middle, and values that a parser may mistake for a number or an answer.
UNFINISHED: Final = (
    *(
        f"\\boxed{{{inner}"
        for inner in ("\\frac{1", "\\frac{1}{", "3 \\times 10^", "2 \\cdot 10^{-", "x^", "\\sqrt{", "-", "(1,")
    ),
    *(
        f"\\boxed{{{value}}}"
        for value in ("", " ", "nan", "inf", "-inf", "1e999", "1/0", "\\frac{0}{0}", "%", "-", ",")
    ),
    *(
        "<answer>",
        "<answer></answer>",
        "<answer>nan</answer>",
        "####",
        "#### nan",
        "Answer:",
        "Answer: inf",
        "The answer is",
    ),
    *(
        "```python",
        "```python\ndef f(",
        "```",
        "```json\n{",
        '{"answer": ',
        '{"answer": null}',
        '{"answer": []}',
        '{"answer": NaN}',
    ),
    *("[]", "[", "{}", "{", "null", "nan", "-", "0", "<think>", "</think>", "<tool_call>", '<tool_call>{"name": '),
)

#: Python programs that end otherwise than a scorer may expect of them, as answers.
ODD_PROGRAMS: Final = tuple(
    f"```python\n{program}\n```"
    for program in (
        'import sys\nsys.stdout.buffer.write(b"\\xff\\xfe\\x00")',  # is no UTF-8
        'import sys\nsys.stderr.buffer.write(b"\\xff\\xfe\\x00")\nsys.exit(1)',
        "raise SystemExit(0)",
        "def f():\n    return f()\n\nf()",
        "print(1 / 0)",
        'print("\\ud800")',
        "x = 1\n\tx = 2",  # is indented wrongly
    )
)

#: A Python program that does nothing, and one that only fails.
IDLE_PROGRAM: Final = "```python\nimport sys\nsys\n```"
FAILING_PROGRAM: Final = "```python\nimport sys\nsys.exit(1)\n```"

#: Answers that begin but never end, as of a policy in a loop: a pattern with nested repetition backtracks exponentially
#: if the end does not come.
ENDLESS: Final = {
    "a block of code that is never closed": "```python\n" + "x = value + 1\n" * 200,
    "a tag that is never closed": "<answer>" + "first word, " * 200,
    "braces that are never closed": "\\boxed{" + "{a} " * 200,
    "white space without end": "The answer is" + " \n\t" * 1_000 + "x",
    "one word without end": "Answer: " + "a" * 3_000 + "!\u00a6",  # a sign that no list of signs has
    "digits and commas without end": "#### " + "1,234," * 500 + "x",
}

#: Malformed arguments as models write them, by what is wrong with them. All are legal strings.
SLIPS: Final = {
    "not JSON": '{"a": ',
    "empty": "",
    "no arguments": "{}",
    "a list": "[1, 2]",
    "null": "null",
    "a number": "1e999",
    "null for an argument": '{"a": null}',
    "an escaped lone surrogate": r'{"a": "\ud800"}',
}

#: JSON (as an escape) and Python may contain it, but UTF-8 cannot: nemo-gym's own echo fails on it.
RAW_SURROGATE: Final = Degenerate("text with a raw lone surrogate", (message("before\ud800after"),))

#: The same in a form that can be encoded.
REPLACED_SURROGATE: Final = Degenerate("text with U+FFFD", (message("before\ufffdafter"),))


def with_tokens(item: Item) -> Item:
    """The item as a training policy returns it."""
    return item | TOKEN_SENTINEL


def turns_with_tokens(tool: str, times: int) -> Iterator[Item]:
    """Twenty calls of a tool, each with the ids of all tokens before it, and a message: three megabytes if `times` is 900."""
    for turn in range(1, 21):
        ids = TOKEN_SENTINEL["prompt_token_ids"] * (times * turn)
        yield with_tokens(function_call(tool, "{}", f"call_{turn}")) | {"prompt_token_ids": ids}
        yield function_call_output("{}", f"call_{turn}")
    yield message("Done.")
