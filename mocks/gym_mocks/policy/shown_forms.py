"""The form in which a prompt asks for a verdict: the JSON object that it shows, its tags, and its labels. Pure."""

import re
from collections.abc import Iterator
from itertools import islice
from typing import Any, Final

#: What says yes, and the no to it, as judge models are asked for them.
_OPPOSITES: Final = {
    "yes": "no",
    "correct": "incorrect",
    "true": "false",
    "pass": "fail",
    "passed": "failed",
    "equivalent": "different",
    "supported": "unsupported",
    "safe": "unsafe",
    "a": "b",
    "1": "0",
}

#: What asks for such an object, and the characters before an example within which it stands.
_ASKING: Final = re.compile(r"json", re.IGNORECASE)
_BEFORE: Final = 300

#: What only an example has that is to be filled in: alternatives, a gap, a type.
_GAP: Final = re.compile(
    r"<[^<>]+>|\||[\"\w]\s*(?:/|\bor\b)\s*[\"\w]|\.\.\.|\b(?:string|int|integer|float|number|bool|boolean)\b"
)
_A_NUMBER: Final = re.compile(r"\b(?:int|integer|float|number|numeric|score)\b", re.IGNORECASE)
_A_FLAG: Final = re.compile(r"\bbool(?:ean)?\b", re.IGNORECASE)
#: Two bounds, but no date, and not how long a text may be ("1-3 sentences").
_RANGE: Final = re.compile(
    r"(?<![\d.])(?<!\d-)(\d+(?:\.\d+)?)\s*(?:-|\u2013|to|and|or|/|\||,|\.\.+)\s*(\d+(?:\.\d+)?)"
    r"(?![\d.]*\d)(?!-\d)(?!\s+(?:\w+\s+)?(?:sentence|word|paragraph|line|bullet)s?\b)"
)
_NUMBER: Final = re.compile(r"-?\d+(?:\.\d+)?")
_BETWEEN: Final = re.compile(r"/|\||,|\bor\b")

#: `"key":`, the place of a value, what closes an object, a label such as `[[A>B]]`, and a tag around a short text.
_KEY: Final = re.compile(r"\s*(?:\"([^\"\n]{1,80})\"|'([^'\n]{1,80})')\s*:\s*")
_VALUE: Final = re.compile(r"(?:\"(?:[^\"\\\n]|\\.)*\"|<[^<>\n]*>|[^,{}\]\n\"])*")
_AFTER: Final = re.compile(r"[\s,.]*")
_CLOSING: Final = re.compile(r"[^{}]{0,200}?\}")
_LABEL: Final = re.compile(r"\[\[([^\[\]\n]{1,40})\]\]")
_TAG: Final = re.compile(r"<([A-Za-z_]\w*)>([^<>]{1,80})</\1>")

#: A line that a prompt shows, such as `VERDICT: YES` or `Score: <0-10>`: at its beginning, or in quotes.
_LINE: Final = re.compile(r"(?:^|[\"'`*])[ \t]*([A-Za-z][A-Za-z _-]{0,30}):[ \t]*([^\n\"'`.;*]{1,60})", re.MULTILINE)

#: Levels of an example, examples that are looked at, characters of a value's place, words of an option, and labels.
_DEEPEST: Final = 12
_EXAMPLES: Final = 200
_PLACE: Final = 2000
_OPTION: Final = 5
_LABELS: Final = 100

#: What stands around a value and is none of it.
_MARKS: Final = "<>\"'` "


def shown_object(prompt: str) -> tuple[bool, dict[str, Any]] | None:
    """Whether the JSON object that a prompt shows as an example is fenced, and its schema; None where it shows none.

    Of several, the last of those with something to be filled in, else of those with `JSON` shortly before them.
    """
    if not _ASKING.search(prompt):
        return None
    best, over = ((0, 0), False, dict[str, Any]()), 0
    for brace in islice(re.finditer(r"\{", prompt), _EXAMPLES):
        at = brace.start()
        if at < over or (read := _object(prompt, at, _DEEPEST)) is None:
            continue
        schema, over = read
        before = prompt[max(0, at - _BEFORE) : at]
        weight = 2 * bool(_GAP.search(prompt, at, over)) + bool(_ASKING.search(before))
        best = max(best, ((weight, at), before.rstrip().endswith(("```", "```json")), schema), key=lambda one: one[0])
    return best[1:] if best[0][0] else None


def _object(text: str, at: int, deep: int) -> tuple[dict[str, Any], int] | None:
    """The example of an object that begins at a brace, as a schema, and where it ends; None where it has no key."""
    fields: dict[str, Any] = {}
    place = at + 1
    while deep and (key := _KEY.match(text, place)):
        schema, place = _example(text, key.end(), deep - 1)
        fields[key[1] or key[2]] = schema
        place = _end(_AFTER, text, place)
    closing = _CLOSING.match(text, place)
    return ({"type": "object", "properties": fields}, closing.end()) if fields and closing else None


def _example(text: str, at: int, deep: int) -> tuple[dict[str, Any], int]:
    """The example of a value, as a schema, and where it ends."""
    if text.startswith("{", at) and (read := _object(text, at, deep)):
        return read
    if text.startswith("[", at) and deep:
        inner, end = _example(text, _end(_AFTER, text, at + 1), deep - 1)
        closing = text.find("]", end)
        return {"type": "array", "items": inner}, closing + 1 if closing >= 0 else end
    end = _end(_VALUE, text, at)
    return _leaf(text[at:end].strip()), end


def _end(pattern: "re.Pattern[str]", text: str, at: int) -> int:
    """Where a pattern that matches anything ends."""
    found = pattern.match(text, at, at + _PLACE)
    return found.end() if found else at


def _leaf(raw: str) -> dict[str, Any]:
    """What stands in the place of a value, such as `"PASS" | "FAIL"`, `<0-10>` or `true`, as a schema."""
    bare, quoted = raw.strip(_MARKS), raw.startswith('"')
    return _range(bare, quoted=quoted) or _choice(bare) or _one_number(bare, quoted=quoted) or {"type": "string"}


def _range(bare: str, *, quoted: bool) -> dict[str, Any] | None:
    span = _RANGE.search(bare)
    if span is None:
        return None
    low, high = sorted(map(_number, span.groups()))
    as_text = quoted and bare == span[0]
    return {"enum": [str(high), str(low)]} if as_text else {"type": "number", "minimum": low, "maximum": high}


def _choice(bare: str) -> dict[str, Any] | None:
    options = [part.strip().strip(_MARKS) for part in _BETWEEN.split(bare)]
    if {option.lower() for option in options} <= {"true", "false"} or _A_FLAG.search(bare):
        return {"type": "boolean"}
    if len(options) == 1 and not is_number(bare):
        options = _pair(bare)
    return {"enum": options} if len(options) > 1 and all(0 < len(each.split()) <= _OPTION for each in options) else None


def _one_number(bare: str, *, quoted: bool) -> dict[str, Any] | None:
    if is_number(bare):
        most = max(1, _number(bare))
        return {"enum": [bare, "0"]} if quoted else {"type": "number", "minimum": 0, "maximum": most}
    return {"type": "number"} if _A_NUMBER.search(bare) and len(bare.split()) <= _OPTION else None


def is_number(text: str) -> bool:
    """Whether a text is a number and nothing else."""
    return _NUMBER.fullmatch(text) is not None


def _number(text: str) -> float:
    return float(text) if "." in text else int(text)


def _pair(word: str) -> list[str]:
    """A verdict and its opposite, spelled alike; empty of what is no verdict."""
    for pair in _OPPOSITES.items():
        if word.lower() in pair:
            spell = str.upper if word.isupper() else str.capitalize if word[0].isupper() else str.lower
            return [spell(each) for each in pair]
    return []


def shown_tags(prompt: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """The tags that a prompt shows around a choice or a number, each with the schema of that."""
    for tag, shown in dict(_TAG.findall(prompt)).items():
        schema = _leaf(shown)
        if schema != {"type": "string"}:
            yield tag, schema


def shown_lines(prompt: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """What lines begin with that a prompt shows with several options or with bounds, each with the schema of what follows."""
    shown: dict[str, list[str]] = {}
    for line in islice(_LINE.finditer(prompt), _EXAMPLES):
        shown.setdefault(line[1], []).append(line[2].strip("[] " + _MARKS))
    for label, values in shown.items():
        options = list(dict.fromkeys(values))
        if len(options) > 1 and all(0 < len(each.split()) <= _OPTION for each in options):
            yield label, {"enum": options}
        elif len(options) == 1 and (_BETWEEN.search(options[0]) or _RANGE.search(options[0])):
            yield label, _leaf(options[0])


def shown_labels(prompt: str) -> list[str]:
    """The labels that a prompt shows, such as `A>B` in `[[A>B]]`, each once."""
    return list(dict.fromkeys(_LABEL.findall(prompt)))[:_LABELS]
