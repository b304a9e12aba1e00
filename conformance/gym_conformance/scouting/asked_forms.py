"""The forms in which a prompt asks for its answer: `'The answer is (X)'`, `Answer: $LETTER`, `<answer>...</answer>`. Pure."""

import re
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Final

#: Characters at either end of a prompt that are searched: how to answer is said first or last. And those of a line.
_SEARCHED: Final = 4_000
_LINE: Final = 200

#: The most characters of a line that may be nothing but a form.
_SHORT: Final = 30

#: What is quoted in a line, or stands in a tag; an apostrophe within a word quotes nothing.
_QUOTED: Final = re.compile(
    r"(?<!\w)(?P<by>['\"`]|\*\*)(?P<said>(?:(?!(?P=by)).){3,120})(?P=by)(?!\w)|[\u201c\u2018](?P<curly>[^\u2018-\u201d]{3,120})[\u2019\u201d]"
    r"|(?P<tagged><(?P<tag>\w{1,40})>[^<>]{1,40}</(?P=tag)>)"
)

#: What follows a colon: `in this format: Answer: X`.
_AFTER_COLON: Final = re.compile(
    r"(?<!\w)(?:format|form|follows|with|as|like|exactly|line|say|write)\b[^:]{0,40}:\s+(.{3,})", re.IGNORECASE
)

#: What stands for an answer.
_PLACEHOLDER: Final = re.compile(
    r"(?<=\w>)[^<>]{1,40}(?=</\w)|(?<=boxed\{)[^{}]{0,40}(?=\})|\$\{?[A-Za-z_]+\}?|<[A-Za-z][^<>/]{0,39}>(?!.*</)"
    r"|\[[^\[\]]{1,40}\]|(?<!boxed)\{[A-Za-z_ ]{1,40}\}|\.\.\.|\u2026|_{2,}"
    r"|\b(?:[XYN]|LETTER|ANSWER|NUMBER|VALUE|CHOICE|OPTION)\b"
    r"|\b[Yy]our (?:final )?(?:answer|choice|letter|number)(?: here)?\b"
)

#: Forms of one prompt that are tried.
_MOST: Final = 8


def asked_forms(texts: Sequence[str]) -> tuple[str, ...]:
    """The forms that a prompt's texts ask for, with `%s` in place of the answer and `%%` for a percent sign.

    What is quoted, what follows a colon, and whole lines that are short, each with the last placeholder in it.
    """
    lines = [line.strip() for text in texts for line in _ends(text).splitlines() if len(line) <= _LINE]
    found = (_form(said) for fragments in (_quoted(lines), _led(lines), _short(lines)) for said in fragments)
    return tuple(islice(dict.fromkeys(form for form in found if form), _MOST))


def _ends(text: str) -> str:
    return text if len(text) <= 2 * _SEARCHED else f"{text[:_SEARCHED]}\n{text[-_SEARCHED:]}"


def _quoted(lines: Sequence[str]) -> Iterator[str]:
    return (one["said"] or one["curly"] or one["tagged"] for line in lines for one in _QUOTED.finditer(line))


def _led(lines: Sequence[str]) -> Iterator[str]:
    return (said for line in lines for said in _AFTER_COLON.findall(line))


def _short(lines: Sequence[str]) -> Iterator[str]:
    return (line for line in lines if len(line) <= _SHORT)


def _form(said: str) -> str | None:
    """The form that a text shows; None if nothing in it stands for an answer, or nothing stands beside that."""
    places = [found.span() for found in _PLACEHOLDER.finditer(said)]
    if not places:
        return None
    start, end = places[-1]
    before, after = said[:start], said[end:]
    return "%s".join(part.replace("%", "%%") for part in (before, after)) if (before + after).strip(" .'\"`") else None
