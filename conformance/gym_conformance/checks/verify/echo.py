"""What verify returns beside the reward: trainers take the tokens to train on from this echo.

Source: `BaseVerifyResponse` extends `BaseVerifyRequest` in nemo_gym/base_resources_server.py (every version); verl and
NeMo RL read the token fields from it, Verifiers pops `response` and `responses_create_params`.
"""

import json
import math
from collections.abc import Iterator, Mapping
from typing import Any, Final

from gym_conformance.contract.endpoints import TOKEN_FIELDS, VERIFY
from gym_conformance.contract.policy_output import DO_NOTHING, function_call, message, reasoning, response, with_tokens
from gym_conformance.contract.statuses import is_success
from gym_conformance.session.contracts import JSON_HEADERS
from gym_conformance.session.exchange import Request, reply_of
from gym_conformance.session.server_fault import ServerFault
from gym_conformance.session.unserved import NO_SUCH_TOOL
from gym_conformance.trials.check import check
from gym_conformance.trials.ending import Violation
from gym_conformance.trials.needs import RESOURCES_SERVER, SCORE
from gym_conformance.trials.trial import Trial
from gym_schemas import ABSENT, Change, differences, is_numeric, same
from gym_schemas.json_values import texts_in

_REPLACEMENT: Final = "\ufffd"

#: Its bytes come in several pieces, and most of these end within a character.
_LONG_TEXT: Final = "\u6f22" * 60_000

#: What policies write beyond ASCII, and how much is shown of the end of a reply.
_WORDS: Final = "Voil\u00e0 \u2013 \u6f22\u5b57, done."
_END: Final = 60

#: Beyond this, an integer is not exact where numbers are floats of 64 bits (RFC 8259, section 6).
_EXACT: Final = 2**53

#: What floats of 32 bits keep.
_CLOSE: Final = 1e-6

_LOOSELY: Final = (
    "The body is parsed into loosely typed values and serialised again: {} becomes [] where both are one type (PHP's "
    "arrays), and large integers are rounded where all numbers are floats. Echo what was sent unchanged."
)

#: Fields of a row with what is easily changed by reading a body loosely and writing it again.
_EASILY_CHANGED: Final[dict[str, Any]] = {
    "gym_conformance_number": 2**60 + 1,
    "gym_conformance_empty": {"object": {}, "list": []},
}


@check(
    "verify-echoes",
    "verify MUST echo responses_create_params and response",
    why="trainers take the tokens to train on from this echo; what is lost here is never learned from.",
    needs=[RESOURCES_SERVER, SCORE],
    gentle=True,
)
async def verify_echoes(trial: Trial, _: object) -> None:
    """Verifies an output of reasoning, a call and a message, and compares the echo with it value by value. Whatever else is echoed of the response and the request must not be changed either, as when an empty object comes back as a list.

    Then it verifies a short message with characters beyond ASCII, whose reply must be complete, and one of 180 KB in
    three-byte characters, which arrives in several pieces. Keys that the server adds, such as defaults of its types,
    are fine; everything that was sent must come back.

    Source: `BaseVerifyResponse` extends `BaseVerifyRequest` (every version); verifiers/v1/tasksets/nemo_gym/taskset.py
    (verifiers 0.4.0) pops both from the reply.
    """
    items = [reasoning("Let me see."), function_call(NO_SUCH_TOOL, '{"a": 1}'), message("Done.", "Really.")]
    sent = response(items, metadata={}, id="resp_echoed")
    session = await trial.open()
    verdict = await trial.scored(session, sent)
    hint = "verify builds its reply by hand: return YourVerifyResponse(**body.model_dump(), reward=...)."
    for key in ("responses_create_params", "response"):
        if not isinstance(verdict.get(key), dict):
            raise Violation(f"{key}, as it was sent", f"{key}: {verdict.get(key)!r}", hint)
    lost = _lost(sent["output"], verdict["response"].get("output"), "response.output")
    given, echoed = trial.gym.row.data["responses_create_params"], verdict["responses_create_params"]
    if lost := lost or _lost(_texts(given), _texts(echoed), "responses_create_params.input"):
        raise Violation("every value that was sent", lost, hint)
    for key, before, after in (
        ("response", {**sent, "output": None}, verdict["response"]),
        ("responses_create_params", {**given, "input": None}, echoed),
    ):
        for change in _changed(before, after):
            raise Violation("every value as it was sent", _told(change, key), _LOOSELY)
    await _expect_whole_reply(trial)
    await _expect_whole_characters(trial)


async def _expect_whole_reply(trial: Trial) -> None:
    """A reply whose length is counted in characters ends too early where one of them has several bytes; or it lacks these."""
    trial.channel.exchanges.clear()
    sent = response([message(_WORDS)])
    reply = await trial.verify_fresh(sent)
    if is_success(reply.status) and not reply.is_json:
        raise Violation(
            f"a reply in JSON to a message with {_WORDS!r} in it, as to one in ASCII",
            f"no JSON; it ends with {reply.text[-_END:]!r}",
            "Content-Length is the number of bytes, not of characters.",
        )
    echoed = reply.fields.get("response") if is_success(reply.status) else None
    if isinstance(echoed, dict) and (lost := _lost(sent["output"], echoed.get("output"), "response.output")):
        raise Violation(
            "characters beyond ASCII as they were sent", lost, "Echo what was sent, and clean a copy of it."
        )


async def _expect_whole_characters(trial: Trial) -> None:
    """A body that is decoded piece by piece loses the characters that a piece ends within; one in another character set, all.

    It is sent as NeMo Gym sends it, without escapes: `request` in nemo_gym/server_utils.py (0.4.0) writes it with orjson.
    """
    trial.channel.exchanges.clear()
    session = await trial.open()
    text = json.dumps({**trial.gym.row.data, "response": response([message(_LONG_TEXT)])}, ensure_ascii=False)
    try:
        reply = reply_of(await session.send(Request("POST", VERIFY, text.encode(errors="replace"), JSON_HEADERS)))
    except ServerFault:
        return  # verify-degenerate tells what long texts do
    verdict = reply.json() if is_success(reply.status) and reply.is_json else None
    echoed = max(texts_in(verdict.get("response")), key=len, default="") if isinstance(verdict, dict) else ""
    if len(echoed) < len(_LONG_TEXT) or _LONG_TEXT in echoed:
        return
    expected = f"a message of {len(_LONG_TEXT)} characters as it was sent"
    if _LONG_TEXT[0] not in echoed:
        hint = "The body is decoded in another character set, such as Latin-1: JSON is UTF-8 (RFC 8259, section 8.1)."
        raise Violation(expected, f"{_LONG_TEXT[:3]!r} comes back as {echoed[:9]!r}", hint)
    if lost := echoed.count(_REPLACEMENT):
        hint = "The body is decoded piece by piece, as it arrives: join its bytes first, and decode them together."
        raise Violation(expected, f"{lost} of them are U+FFFD", hint)


def _texts(params: dict[str, Any]) -> list[Any]:
    """The contents of the input: versions differ in the keys they add around them."""
    given = params.get("input")
    return (
        [entry.get("content") if isinstance(entry, dict) else entry for entry in given]
        if isinstance(given, list)
        else [given]
    )


def _changed(sent: Any, echoed: Any) -> Iterator[Change]:
    """Where another value stands for the one that was sent.

    What is left out, is null, or is of another simple type is not: typed servers drop, default and convert. Nor is a
    number that is only rounded, as some languages round every large one.
    """
    for change in differences(sent, echoed):
        before, after = change.before, change.after
        if (
            _swapped(change)
            or (isinstance(before, str) and isinstance(after, str))
            or (is_numeric(before) and is_numeric(after) and not _close(before, after))
        ):
            yield change


def _swapped(change: Change) -> bool:
    """Whether an object has become a list, or a list an object."""
    return {type(change.before), type(change.after)} == {dict, list}


def _rounded(change: Change) -> bool:
    """Whether a large integer has been read as a float."""
    before, after = change.before, change.after
    return is_numeric(before) and is_numeric(after) and abs(before) > _EXACT and _close(before, after)


def _close(one: float, two: float) -> bool:
    try:
        return math.isclose(one, two, rel_tol=_CLOSE)
    except OverflowError:  # an integer that no float holds
        return True


def _told(change: Change, path: str) -> str:
    steps = (f"[{step}]" if isinstance(step, int) else f".{step}" for step in change.way)
    return f"{path}{''.join(steps)}: {change.after!r} for {change.before!r}"


def _lost(sent: Any, echoed: Any, path: str) -> str:
    """The first value of `sent` that `echoed` lacks or changes, in words; '' where it is all there.

    Keys may be added, and a null may be left out.
    """
    for change in differences(sent, echoed):
        if change.before is not ABSENT and (change.before is not None or change.after is not ABSENT):
            return _told(change, path)
    return ""


@check(
    "verify-echoes-tokens",
    "verify MUST echo the token fields unchanged",
    why="verl and NeMo RL train on the tokens in this echo; if they are lost or changed, training uses nothing, or another text.",
    needs=[RESOURCES_SERVER, SCORE],
    subjects=lambda _: ("a message", "a tool call", "a reasoning item"),
)
async def verify_echoes_tokens(trial: Trial, subject: str) -> None:
    """Verifies an output whose last item carries sentinel token ids and log probabilities, and looks for them in the echo.

    Source: the `*ForTraining` types in nemo_gym/openai_utils.py (0.4.0); the fields are on the last item of a turn.
    """
    item = {
        "a message": message("Done."),
        "a tool call": function_call(NO_SUCH_TOOL, "{}"),
        "a reasoning item": reasoning("Let me see."),
    }[subject]
    session = await trial.open()
    sent = with_tokens(item)
    verdict = await trial.scored(session, response([sent]))
    echoed = verdict.get("response")
    output = echoed.get("output") if isinstance(echoed, dict) else None
    last = output[-1] if isinstance(output, list) and output and isinstance(output[-1], dict) else {}
    for name in TOKEN_FIELDS:
        if not same(last.get(name), sent[name]):
            raise Violation(
                f"{name}: {sent[name]}",
                f"{name}: {last.get(name)}",
                "The response passes through a type without token fields; use NeMoGymResponse and echo it unchanged.",
            )


@check(
    "verify-keeps-row-fields",
    "verify drops or changes row fields that it does not know",
    why="a row's own fields, such as its id or source, are missing from the rollouts that are written.",
    needs=[RESOURCES_SERVER, SCORE],
    framework=True,
    gentle=True,
)
async def verify_keeps_row_fields(trial: Trial, _: object) -> None:
    """Verifies the first row with an extra field, and looks for it in the reply; then with a large integer and an empty object, which are reported if they come back changed.

    Source: `BaseVerifyResponse` in nemo_gym/base_resources_server.py, the default reply type, drops them (every
    version).
    """
    session = await trial.open()
    verdict = await trial.scored(session, DO_NOTHING.response, gym_conformance_extra="kept?")
    _expect_unchanged(trial.gym.row.data, verdict)
    if verdict.get("gym_conformance_extra") != "kept?":
        raise Violation(
            "the extra field in the reply",
            "it is missing",
            "This is NeMo Gym's default; give the request and response models ConfigDict(extra='allow') to change it.",
        )
    trial.channel.exchanges.clear()
    reply = await trial.verify(await trial.open(), DO_NOTHING.response, **_EASILY_CHANGED)
    if is_success(reply.status) and isinstance(reply.said, dict):  # a server may want text in fields that it keeps
        _expect_unchanged(_EASILY_CHANGED, reply.fields)


def _expect_unchanged(sent: Mapping[str, Any], verdict: Mapping[str, Any]) -> None:
    """Fields may be dropped, converted, or overwritten by what verify found out; these changes have no such reason."""
    fields = {key: value for key, value in sent.items() if key not in {"responses_create_params", "response"}}
    for change in differences(fields, verdict):
        if _swapped(change) or _rounded(change):
            raise Violation("the row's fields, where they are kept, as they were sent", _told(change, "row"), _LOOSELY)
