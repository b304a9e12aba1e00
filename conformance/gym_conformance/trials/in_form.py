"""Answers in form: what a server owes to its client whatever the models, sandboxes and hosts do that it asks."""

import re
from typing import Any, Final

from gym_conformance.contract.statuses import is_crash, is_error
from gym_conformance.contract.verify_reply import is_number, is_summed
from gym_conformance.session.exchange import Reply
from gym_conformance.trials.ending import Violation
from gym_conformance.trials.trial import describe

#: Exceptions that say that the code met what it did not expect, and not what it met.
_SLIPS: Final = (
    "AttributeError",
    "AssertionError",
    "IndexError",
    "JSONDecodeError",
    "KeyError",
    "NameError",
    "TypeError",
    "UnboundLocalError",
)

#: What frameworks say of an error that nobody handled.
_NOTHING_SAID: Final = ("", "Internal Server Error", "An unknown error occurred")

#: A reward that JSON has no word for.
_NOT_FINITE: Final = re.compile(r'"reward"\s*:\s*-?(?:nan|inf)', re.IGNORECASE)

#: Characters that are shown of a reward that cannot be read.
_AROUND: Final = 20


def expect_named_cause(reply: Reply, expected: str, hint: str, *, path: str = "") -> None:
    """Require of a 5xx that it names its cause.

    Raises:
        Violation: it says nothing, or is the bare `repr` of a programming error.
    """
    if is_crash(reply.status) and _names_no_cause(reply.text):
        actual = f"{path}: {describe(reply)}" if path else describe(reply)
        raise Violation(f"{expected}, or an error that names its cause", actual, hint)


def expect_reported(reply: Reply, hint: str) -> None:
    """Require of a verify's reply that is no error that it has a reward, or says why it has none.

    Raises:
        Violation: it has neither `reward` nor `_ng_failure_class`.
    """
    reported = not {"reward", "_ng_failure_class"}.isdisjoint(reply.fields)
    if not is_error(reply.status) and not reported:
        raise Violation("a reward, or _ng_failure_class", describe(reply), hint)


def expect_summed(verdict: Any) -> None:
    """Require that a verify's reward is the sum of its components, where it has any.

    Raises:
        Violation: it is not.
    """
    if not is_summed(verdict):
        components = verdict["reward_components"]
        raise Violation(
            f"a sum of {verdict['reward']}, the reward",
            f"{components} sums to {sum(components.values())}",
            "A component is left out or weighted after the sum, or the reward is clipped.",
        )


def _names_no_cause(said: str) -> bool:
    text = said.strip().strip('"')
    return text in _NOTHING_SAID or text.startswith(_SLIPS)


def expect_text(reply: Reply) -> None:
    """Require text that a client can decode.

    Raises:
        Violation: it is not UTF-8.
    """
    try:
        reply.body.decode()
    except UnicodeDecodeError as error:
        raise Violation(
            "UTF-8 text",
            f"{error.reason} at byte {error.start}: {reply.body[max(0, error.start - _AROUND) :][: 3 * _AROUND]!r}",
            "The tool returns raw bytes, text in another encoding, or text that is cut off within a character.",
        ) from None


def expect_number(reply: Reply, given: str = "") -> None:
    """Require a finite number for a reward; `given` names what was sent."""
    reward = reply.fields.get("reward")
    if not is_number(reward):
        raise Violation(
            "reward: a finite number" + (f" for {given}" if given else ""),
            f"reward: {reward!r}" if reply.is_json else _unreadable(reply),
            _why_no_number(reply, reward),
        )


def _why_no_number(reply: Reply, reward: object) -> str:
    if not reply.body:
        return "An error after the status goes unseen: a JSON library that refuses NaN, for one, has written nothing."
    if not reply.is_json and not _NOT_FINITE.search(reply.text):
        return "The reply is no JSON: it is cut off, or is written without a JSON library."
    if reward is None or isinstance(reward, float):
        return "A division by zero, or a score that was never set; NaN becomes null in JSON."
    if reward == {}:
        return "In JavaScript, an empty object may be a promise: await the score."
    return "The score is converted to another type, such as text: return float(score)."


def _unreadable(reply: Reply) -> str:
    """What a reply that is no JSON says of the reward, and how it begins."""
    _, found, rest = reply.text.partition('"reward"')
    return f"no JSON, with {found}{rest[:_AROUND]}...; {describe(reply)}" if found else describe(reply)
