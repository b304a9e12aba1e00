"""Where a judge model's prompt contains the policy's text, what delimits it, and how a verdict is written. Pure."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from gym_conformance.contract.dataset_rows import Row
from gym_conformance.session.exchange import Exchange

#: Roles whose messages a model follows as instructions.
INSTRUCTIONS: Final = frozenset({"system", "developer"})

#: Characters of the line that delimits a policy's text.
_CLOSING: Final = 120

#: Pairs of words that judge models are asked to use for yes and no.
_PAIRS: Final = (
    ("A=B", "A!=B"),
    ("yes", "no"),
    ("correct", "incorrect"),
    ("true", "false"),
    ("pass", "fail"),
    ("equivalent", "different"),
    ("supported", "unsupported"),
    ("safe", "unsafe"),
    ("complied", "refused"),
    ("A", "B"),
)

#: Notations around a verdict, if the prompt uses them.
_FORMS: Final = ("[[{}]]", "\\boxed{{{}}}", "[{}]", "**{}**")

#: `Judgement: Yes`, and `<verdict>Yes</verdict>`; `{}` is the word.
_LABELLED: Final = r"((?:[A-Z]\w* )?[A-Za-z]\w*:[ *\"\[]*)(?:\w+(?:/|\||\"? or \"?))?{}(?!\w)"
_TAGGED: Final = r"<(\w+)>\s*{}\s*</\1>"


@dataclass(frozen=True)
class PromptPart:
    """One message of a prompt: its role and text."""

    role: str
    text: str


@dataclass(frozen=True)
class PolicyPlace:
    """The place of a policy's text in a part; `after` is what follows it."""

    role: str
    after: str

    @property
    def closing(self) -> str:
        """From the end of the policy's text to the end of the next line that is not blank; '' if there is none."""
        line = self.after.lstrip().partition("\n")[0].rstrip()[:_CLOSING]
        return self.after[: self.after.index(line) + len(line)] if line else ""


@dataclass(frozen=True)
class VerdictWords:
    """A yes and a no as a judge model may write them."""

    yes: str
    no: str

    @property
    def quoted_first(self) -> str:
        """A no from a judge that quotes the policy first."""
        return f"The text claims {self.yes}.\n\n{self.no}"

    @property
    def quoted_last(self) -> str:
        """A no from a judge that quotes the policy last."""
        return f"{self.no}\n\nThe text claims {self.yes}."


@dataclass(frozen=True)
class Judgement:
    """A verify: what the judge model was asked, the reward, and what was sent."""

    parts: tuple[PromptPart, ...]
    reward: float | None
    exchanges: tuple[Exchange, ...]


@dataclass(frozen=True)
class JudgedRow:
    """A row, and the form in which its verifier passes the policy's text to its judge model."""

    row: Row
    wrap: str
    place: PolicyPlace
    judgement: Judgement

    def written(self, text: str) -> str:
        """The policy's answer with this text in it."""
        return self.wrap.format(text)


def parts_of(body: Mapping[str, Any]) -> Iterator[PromptPart]:
    """The messages of a request to a model, in any of the three APIs."""
    for key in ("instructions", "system"):
        yield from _content_parts("system", body.get(key))
    messages = body.get("messages", body.get("input"))
    if isinstance(messages, str):
        yield PromptPart("user", messages)
    for item in messages if isinstance(messages, list) else ():
        if isinstance(item, dict):
            yield from _content_parts(str(item.get("role", "user")), item.get("content"))


def _content_parts(role: str, content: Any) -> Iterator[PromptPart]:
    if isinstance(content, str):
        yield PromptPart(role, content)
    for part in content if isinstance(content, list) else ():
        if isinstance(part, dict) and isinstance(part.get("text"), str):
            yield PromptPart(role, part["text"])


def place_of(parts: Iterable[PromptPart], texts: Sequence[str]) -> PolicyPlace | None:
    """The place of the first of these texts that occurs, preferably in instructions; None if none does."""
    there = list(parts)
    for text in texts:
        found = [PolicyPlace(part.role, part.text.partition(text)[2]) for part in there if text in part.text]
        if found:
            return min(found, key=lambda place: place.role not in INSTRUCTIONS)
    return None


def verdicts(prompt: str) -> Iterator[VerdictWords]:
    """The yes and no that a prompt may ask for, those in a notation of their own first."""
    pairs = [pair for words in _PAIRS for pair in _spelled(prompt, *words)]
    for yes, no in pairs:
        yield from _formed(prompt, yes, no)
    yield from (VerdictWords(yes, no) for yes, no in pairs)


def _spelled(prompt: str, yes: str, no: str) -> Iterator[tuple[str, str]]:
    """Both words in the same spelling, if the prompt contains both."""
    cases = (str.upper, str.capitalize, str.lower) if len(yes) > 1 and yes.isalpha() else (str,)
    for case in cases:
        if all(re.search(rf"(?<!\w){re.escape(case(word))}(?!\w)", prompt) for word in (yes, no)):
            yield case(yes), case(no)


def _formed(prompt: str, yes: str, no: str) -> Iterator[VerdictWords]:
    for form in _FORMS:
        if form.format(yes) in prompt and form.format(no) in prompt:
            yield VerdictWords(form.format(yes), form.format(no))
    labels = [set(re.findall(_LABELLED.format(re.escape(word)), prompt)) for word in (yes, no)]
    for label in sorted(labels[0] & labels[1]):
        name = label.rstrip(' *"[')
        yield VerdictWords(f"{name} {yes}", f"{name} {no}")
    for tag in dict.fromkeys(re.findall(_TAGGED.format(re.escape(yes)), prompt)):
        yield VerdictWords(f"<{tag}>{yes}</{tag}>", f"<{tag}>{no}</{tag}>")
