"""What a policy under pressure hands in, made from right and wrong answers; and right answers in another fair form. Pure."""

from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Any, Final

from gym_conformance.calibration.moulds import GivenAnswer, TextMould
from gym_conformance.contract.dataset_rows import Call
from gym_conformance.contract.policy_output import message, reasoning

#: Candidates in a list that has the right one in its midst.
_CANDIDATES: Final = 50

#: Digits of a number that is written in another way.
_DIGITS: Final = 9

#: Named answers.
Named = Iterator[tuple[str, GivenAnswer]]


def pressed(mould: TextMould, right: str, wrong: Sequence[str]) -> Named:
    """Answers that no reader takes for right, each with its name; `wrong` are surely wrong answers, two at least.

    The right one stands neither last nor, where there are several, first: to take the last or the first of many may be
    the rule.
    """
    many = list(wrong[: _CANDIDATES - 1])
    many.insert((len(many) + 1) // 2, right)
    first, last = wrong[0], wrong[1]
    several = "\n".join(mould.write(text) for text in (first, right, last))
    yield "a list of candidates, the right one among them", _saying(mould.write(", ".join(many)))
    yield "several answers, the right one in the middle", _saying(several)
    yield "the right answer, taken back", _saying(f"{mould.write(right)}\nNo, that is wrong.\n{mould.write(last)}")
    yield "a denial", _saying(mould.write(f"not {right}, but {last}"))
    thought = reasoning(mould.write(right))
    yield (
        "the right answer in the reasoning alone, a wrong one at the end",
        GivenAnswer((thought, message(mould.write(last)))),
    )
    yield "the right answer in the reasoning alone", GivenAnswer((thought, message("I am done.")))


def fair_forms(mould: TextMould, right: str) -> Named:
    """The same answer in other fair writings, each with its name."""
    yield "white space around it", _saying(f"\n  {mould.write(right)}  \n")
    yield "white space around the answer in it", _saying(mould.write(f" {right} "))
    if right.isascii() and any(map(str.isalpha, right)) and len(right) > 1:
        yield "another case", _saying(mould.write(right.lower() if right.isupper() else right.upper()))
    if other := _other_number(right):
        yield "the same number, written otherwise", _saying(mould.write(other))


def _other_number(text: str) -> str | None:
    """`42.0` for `42`, and `1/2` for `0.5`."""
    digits = text.removeprefix("-").replace(".", "", 1)
    if not (digits.isascii() and digits.isdigit()) or len(digits) > _DIGITS or text.endswith("."):
        return None
    number = Fraction(text)
    return f"{text}.0" if "." not in text else str(number) if number.denominator > 1 else str(number.numerator)


def changed_calls(answer: GivenAnswer) -> Named:
    """The right tools with other arguments throughout."""
    changed = tuple(Call(call.name, _changed(call.arguments)) for call in answer.calls)
    if changed != answer.calls:
        yield "the right calls with every argument changed", GivenAnswer.of(changed, "")


def other_deeds(answer: GivenAnswer, others: Sequence[GivenAnswer]) -> Named:
    """The last words without the calls, and the right calls among those of other rows."""
    said = tuple(item for item in answer.items if item.get("type") == "message")
    if answer.calls and said:
        yield "the last words alone", GivenAnswer(said[-1:], (), answer.gold)
    beside = [call for other in others[:4] for call in other.calls if call not in answer.calls]
    if answer.calls and len(beside) > 1:
        half = len(beside) // 2
        made = GivenAnswer.of((*beside[:half], *answer.calls, *beside[half:]), "")
        yield "the right calls among others", GivenAnswer((*made.items, *said[-1:]), made.calls)


def _changed(arguments: Any) -> Any:
    if isinstance(arguments, dict):
        return {key: _changed(value) for key, value in arguments.items()}
    if isinstance(arguments, list):
        return [_changed(value) for value in arguments]
    if isinstance(arguments, bool):
        return not arguments
    if isinstance(arguments, int | float):
        return arguments + 7919
    return f"{arguments[::-1]} zq" if isinstance(arguments, str) else arguments


def _saying(words: str) -> GivenAnswer:
    return GivenAnswer.of((), words)
