"""What a policy under pressure hands in, made from right and wrong answers; and fair variants of right ones. Pure."""

import json
import re
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Any, Final

from gym_conformance.calibration.answer_templates import TextTemplate
from gym_conformance.calibration.given_answer import GivenAnswer
from gym_conformance.calibration.object_answers import ObjectTemplate
from gym_conformance.contract.dataset_rows import Call
from gym_conformance.contract.policy_output import Item, message, reasoning
from gym_conformance.trajectories.programs import defined_in
from gym_conformance.trajectories.trajectory import is_linked
from gym_schemas import mapped

#: Candidates in a list that contains the right one.
_CANDIDATES: Final = 50

#: Digits of a number that is rewritten.
_DIGITS: Final = 9

#: The least length of a text that is cut off: the rest of a shorter one may be an abbreviation.
_CUT: Final = 5

#: A long text before an answer, and the words before the recorded one that show that such may be said.
_LONG: Final = "I go through it once more, step by step. " * 100
_SAID: Final = 3

_WORD: Final = re.compile(r"\w+")

#: A number without thousands separators or exponents: its sign, the digits before the point, and those after it.
_PLAIN_NUMBER: Final = re.compile(r"(-?)(\d{1,9})(?:\.(\d{1,9}))?", re.ASCII)

#: Names of the probes with a non-number, or with a changed number.
OTHER_NUMBERS: Final = (
    "NaN for a number",
    "the number without its sign",
    "the number with its point elsewhere",
)

#: The name of a text that no parser reads.
UNREADABLE: Final = "a text that cannot be parsed"

#: The program that replaces another, and its name: nothing appended to it runs, and it exits with success.
ENDS: Final = "import sys\nsys.exit(0)\n"
ENDS_EARLY: Final = "a program that ends before it is tested"

#: Why that may be paid.
TESTED_AFTER: Final = (
    "The tests stand after the program in one process, and its exit status decides: let each test say that it ran."
)

#: A Python program in a message.
_PROGRAM: Final = re.compile(r"(```(?:python|py)[ \t]*\n).*?(```)", re.DOTALL | re.IGNORECASE)

#: Letters of other alphabets that look like Latin ones, and digits that look like ASCII ones.
_LOOK_ALIKES: Final = str.maketrans(
    "aceiopxyABCEHKMOPTX0123456789",
    "\u0430\u0441\u0435\u0456\u043e\u0440\u0445\u0443\u0410\u0412\u0421\u0415\u041d\u041a\u041c\u041e\u0420\u0422\u0425"
    "\uff10\uff11\uff12\uff13\uff14\uff15\uff16\uff17\uff18\uff19",
)

#: Named answers.
Named = Iterator[tuple[str, GivenAnswer]]


def amidst(right: Any, wrong: Sequence[Any]) -> list[Any]:
    """Candidates, the right one in the middle."""
    many = list(wrong[: _CANDIDATES - 1])
    many.insert((len(many) + 1) // 2, right)
    return many


def pressed(template: TextTemplate | ObjectTemplate, right: str, wrong: Sequence[str]) -> Named:
    """Answers that no reader accepts, each with its name; `wrong` has at least two surely wrong answers.

    The right one is never last nor, if there are several, first, because a fair rule may take the last or the first of
    many.
    """
    last = wrong[1]
    joint = template.placeholder.joint if isinstance(template, TextTemplate) else ", "
    yield "a list of candidates, the right one among them", _answer_of(template.write(joint.join(amidst(right, wrong))))
    yield from several(template, right, wrong)
    corrected = (message(template.write(right)), message(f"No, that is wrong.\n{template.write(last)}"))
    yield "the right answer, taken back in another message", GivenAnswer(corrected)
    if isinstance(template, TextTemplate):  # before an object any words may stand
        yield "a denial", _answer_of(template.write(f"not {right}, but {last}"))
    yield UNREADABLE, _answer_of(template.write("(?"))
    yield from ((name, _answer_of(template.write(text))) for name, text in other_numbers(right))
    thought = reasoning(template.write(right))
    yield (
        "the right answer in the reasoning alone, a wrong one at the end",
        GivenAnswer((thought, message(template.write(last)))),
    )
    yield "the right answer in the reasoning alone", GivenAnswer((thought, message("I am done.")))


def several(template: TextTemplate | ObjectTemplate, right: str, wrong: Sequence[str]) -> Named:
    """The right answer before and after wrong ones."""
    first, last = map(template.write, wrong[:2])
    own = template.write(right)
    yield "several answers, the right one in the middle", _answer_of(f"{first}\n{own}\n{last}")
    yield "the right answer, taken back", _answer_of(f"{own}\nNo, that is wrong.\n{last}")


def of_several(
    template: TextTemplate, elements: Sequence[str]
) -> Iterator[tuple[str, GivenAnswer, GivenAnswer | None]]:
    """Nothing, or the first alone, in the place of several values; where any of them is right, so is the last."""
    yield "nothing in the place of several", _answer_of(template.write("")), None
    first, last = (_answer_of(template.write(each)) for each in (elements[0], elements[-1]))
    yield "the first of several alone", first, last


def cut_off(template: TextTemplate, right: str) -> Iterator[tuple[str, str, GivenAnswer]]:
    """The right answer cut off as by a token limit: the name, what is left of the text, and the answer.

    Numbers are left out, since the rest may be close enough, as are choices, since the rest may identify one, and texts
    whose rest may be an answer itself.
    """
    within = (at for at in range((len(right) + 1) // 2, 1, -1) if right[at - 1 : at + 1].isalnum())
    left = right[: next(within, 0)]
    if len(right) >= _CUT and any(map(str.isalpha, left)) and not template.placeholder.key:
        yield "the right answer, cut off in its midst", left, _answer_of(template.before + left)


def fair_forms(template: TextTemplate, right: str) -> Named:
    """The same answer in other fair notations, each with its name."""
    yield "white space around it", _answer_of(f"\n  {template.write(right)}  \n")
    yield "white space around the answer in it", _answer_of(template.write(f" {right} "))
    if len(_WORD.findall(template.before)) >= _SAID:  # what is said before it does not count
        yield "after a long text", _answer_of(f"{_LONG}\n{template.write(right)}")
    is_text = not right.startswith(("{", "["))  # keys, and words such as true, have a case of their own
    if is_text and right.isascii() and any(map(str.isalpha, right)) and len(right) > 1:
        yield "another case", _answer_of(template.write(right.lower() if right.isupper() else right.upper()))
    if other := _other_number(right):
        yield "the same number, written otherwise", _answer_of(template.write(other))


def fair_objects(template: ObjectTemplate, right: str) -> Named:
    """The same object in other fair notations, each with its name."""
    found = json.loads(right)
    yield "white space around it", _answer_of(f"\n  {template.write(right)}  \n")
    yield "the keys in another order", _answer_of(template.write(json.dumps(turned(found), ensure_ascii=False)))
    yield "the object on several lines", _answer_of(template.write(json.dumps(found, ensure_ascii=False, indent=2)))


def other_turns(template: TextTemplate, elements: Sequence[str]) -> Named:
    """The values in the opposite order, and each twice; whether that matters depends on the task."""
    for name, turned_ in (
        ("opposite order", elements[::-1]),
        ("each twice", [each for each in elements for _ in "ab"]),
    ):
        yield f"the values in it, {name}", _answer_of(template.write(template.placeholder.joint.join(turned_)))


def look_alikes(template: TextTemplate, right: str) -> Named:
    """The same answer in look-alike letters of other alphabets, which a fair verifier may or may not fold."""
    if (other := right.translate(_LOOK_ALIKES)) != right:
        yield "look-alike letters and digits", _answer_of(template.write(other))


def _other_number(text: str) -> str | None:
    """The number in another notation: `42.0` for `42`, and `1/2` for `0.5`."""
    digits = text.removeprefix("-").replace(".", "", 1)
    if not (digits.isascii() and digits.isdigit()) or len(digits) > _DIGITS or text.endswith("."):
        return None
    number = Fraction(text)
    return f"{text}.0" if "." not in text else str(number) if number.denominator > 1 else str(number.numerator)


def other_numbers(text: str) -> Iterator[tuple[str, str]]:
    """Non-numbers, and other numbers with the same digits, each with its name; nothing unless it is a plain number.

    A dash before a number may not be a sign, so a sign is only removed; a hundredfold number may be read as a
    percentage, so the decimal point moves by one place.
    """
    if not (written := _PLAIN_NUMBER.fullmatch(text)):
        return
    sign, whole, part = written.groups()
    not_one, no_sign, elsewhere = OTHER_NUMBERS
    yield not_one, "NaN"
    if not text.strip("-0."):
        return
    if sign:
        yield no_sign, text.removeprefix(sign)
    if part:
        yield elsewhere, f"{sign}{int(whole + part[0])}.{part[1:]}".rstrip(".")


def changed_calls(answer: GivenAnswer) -> Named:
    """The right tools with different arguments throughout."""
    changed = tuple(Call(call.name, mapped(call.arguments, _other)) for call in answer.calls)
    if changed != answer.calls:
        yield "the right calls with every argument changed", GivenAnswer.of(changed, "")


def ended_programs(answer: GivenAnswer) -> Named:
    """The answer with its Python programs replaced by one that exits at once: those in its message, else in its calls.

    With replaced calls no message is kept: if a program only finds out what to say, the message is the answer. Where later
    calls need its output, nothing is replaced.
    """
    words = _PROGRAM.sub(lambda fenced: f"{fenced[1]}{ENDS}{fenced[2]}", answer.words)
    calls = tuple(Call(call.name, mapped(call.arguments, _ended)) for call in answer.calls)
    if words != answer.words:
        yield ENDS_EARLY, answer.saying(words)
    elif calls != answer.calls and not _linked(answer):
        yield ENDS_EARLY, GivenAnswer.of(calls, "")


def without_programs(answer: GivenAnswer) -> GivenAnswer:
    """The answer's other calls."""
    return GivenAnswer.of([call for call in answer.calls if mapped(call.arguments, _ended) == call.arguments], "")


def _ended(value: Any, _: object) -> Any:
    return ENDS if isinstance(value, str) and defined_in(value) else value


def fair_calls(answer: GivenAnswer) -> Named:
    """The same calls in another notation."""
    other = tuple(Call(call.name, turned(call.arguments)) for call in answer.calls)
    if any(
        json.dumps(call.arguments) != json.dumps(own.arguments) for call, own in zip(other, answer.calls, strict=True)
    ):
        yield "the arguments in another order", _made(other, answer)


def turned(arguments: Any) -> Any:
    """The value with the keys of each object reversed."""
    if isinstance(arguments, dict):
        return {key: turned(value) for key, value in reversed(arguments.items())}
    return [turned(value) for value in arguments] if isinstance(arguments, list) else arguments


def other_order(answer: GivenAnswer) -> Named:
    """The right calls in reverse order; whether order matters depends on the task."""
    if answer.calls[::-1] != answer.calls and not _linked(answer):
        yield "the right calls in the opposite order", _made(answer.calls[::-1], answer)


def other_deeds(answer: GivenAnswer, others: Sequence[GivenAnswer]) -> Named:
    """The message without the calls, and the right calls among those of other rows."""
    messages = _messages(answer)
    if answer.calls and messages:
        yield "the last words alone", GivenAnswer(messages[-1:], (), answer.gold)
        for _, changed in changed_calls(answer):
            yield "the last words after calls with every argument changed", _made(changed.calls, answer)
    beside = [call for other in others[:4] for call in other.calls if call not in answer.calls]
    if answer.calls and len(beside) > 1:
        half = len(beside) // 2
        yield "the right calls among others", _made((*beside[:half], *answer.calls, *beside[half:]), answer)


def altered_calls(answer: GivenAnswer, turn: int) -> Named:
    """The right calls twice, or with one argument changed; `turn` selects which, so that it varies from row to row."""
    if _linked(answer):
        return
    if answer.calls:
        yield "the right calls, each twice", _made([call for call in answer.calls for _ in range(2)], answer)
    places = [(at, name) for at, call in enumerate(answer.calls) for name in call.arguments]
    if len(places) > 1:
        at, name = places[turn % len(places)]
        call = answer.calls[at]
        changed = Call(call.name, {**call.arguments, name: mapped(call.arguments[name], _other)})
        if changed != call:
            made = (*answer.calls[:at], changed, *answer.calls[at + 1 :])
            yield "the right calls with one argument changed", _made(made, answer)


def _linked(answer: GivenAnswer) -> bool:
    """Whether a call uses something from an earlier one's reply, so that it must keep its place."""
    return any(is_linked(call.arguments) for call in answer.calls)


def _made(calls: Sequence[Call], answer: GivenAnswer) -> GivenAnswer:
    """These calls, followed by the answer's message."""
    made = GivenAnswer.of(calls, "")
    return GivenAnswer((*made.items, *_messages(answer)[-1:]), made.calls)


def _messages(answer: GivenAnswer) -> tuple[Item, ...]:
    return tuple(item for item in answer.items if item.get("type") == "message")


def _other(value: Any, _: object) -> Any:
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float):
        return value + 7919
    return f"{value[::-1]} zq" if isinstance(value, str) else value


def _answer_of(words: str) -> GivenAnswer:
    return GivenAnswer.of((), words)
