"""A policy that judges: it says yes or no in the form that it is asked for, as a judge model would.

In this order: the arguments of a tool that it is made to call, the JSON Schema that its answer has to follow, the JSON
object that its prompt shows, else words of the caller's choice, with the tags, the label and the lines that its prompt
shows.
"""

import json
import re
from collections.abc import Iterator, Mapping
from random import Random
from typing import Any, Final

from gym_mocks.policy.conversation import PolicyRequest, Prompt
from gym_mocks.policy.items import Say, ToolCall
from gym_mocks.policy.policies import Policy
from gym_mocks.policy.samples import sample
from gym_mocks.policy.shown_forms import is_number, shown_labels, shown_lines, shown_object, shown_tags

#: How words begin that speak for an answer, and against it; and those that do as a whole.
_FOR: Final = re.compile(
    "yes|correct|true|pass|right|equivalent|support|safe|valid|complete|satisf|met|match|accept|fulfil|full|high|good"
    "|excellent|complied|success|equal|same|approve|win|faithful|ground"
)
_AGAINST: Final = re.compile(
    "incorrect|invalid|incomplete|inconsistent|insufficient|inaccurate|unsupport|unsafe|unsatisf|unaccept|unmet|unequal"
    "|unfaithful|unjust|wrong|false|fail|different|refus|reject|low|bad|poor|harm|violat|error|bias|hallucinat|contradict"
    "|leak|toxic|miss|lack|lose|loss"
)
_NO: Final = frozenset({"no", "not", "non", "none"})

#: Levels of schemas, and items of a list.
_DEEPEST: Final = 12
_MOST: Final = 100

_SCORE: Final = re.compile("score|rating|grade|mark|points", re.IGNORECASE)

_REASON: Final = "This is what the mock judge says."


def judging(*, favourable: bool, words: str) -> Policy:
    """A policy that judges everything so, in the form that it is asked for; in `words` where it knows no such form."""

    def policy(request: PolicyRequest) -> Say | ToolCall:
        if tool := _forced(request):
            return ToolCall(tool, json.dumps(_valid(request.tools[tool], favourable=favourable)))
        if schema := _schema(request.body):
            return Say(json.dumps(_valid(schema, favourable=favourable)))
        prompt = "\n\n".join(entry.text for entry in request.entries if isinstance(entry, Prompt))
        if (shown := shown_object(prompt)) is None:
            tagged, lines = _tagged(prompt, favourable=favourable), _lines(prompt, favourable=favourable)
            return Say("\n".join([words, *tagged, *_labelled(prompt, words, favourable=favourable), *lines]))
        fenced, schema = shown
        said = json.dumps(_filled(schema, schema, favourable=favourable))
        return Say(f"```json\n{said}\n```" if fenced else said)

    return policy


def _forced(request: PolicyRequest) -> str:
    """The tool that has to be called; '' where a text will do."""
    choice = request.body.get("tool_choice")
    if isinstance(choice, dict):
        function = choice.get("function")
        name = str((function if isinstance(function, dict) else choice).get("name"))
        return name if name in request.tools else next(iter(request.tools), "") if choice.get("type") == "any" else ""
    return next(iter(request.tools), "") if choice == "required" else ""


def _schema(body: Mapping[str, Any]) -> dict[str, Any]:
    """The schema that the answer has to follow (`response_format` of chat completions, `text.format` of responses); empty where there is none."""
    text = body.get("text")
    match body.get("response_format") or (text.get("format") if isinstance(text, dict) else None):
        case {"type": "json_schema", "json_schema": {"schema": dict(schema)}}:
            return schema
        case {"type": "json_schema", "schema": dict(schema)}:
            return schema
    return {}


def _valid(schema: dict[str, Any], *, favourable: bool) -> Any:
    """A verdict that the schema allows; any value that it allows where none is found.

    Raises:
        LookupError: it allows none.
    """
    from gym_schemas import Acceptance, upgrade  # noqa: PLC0415 - only where a policy is given a schema

    value = _filled(schema, schema, favourable=favourable)
    try:
        allowed = Acceptance(upgrade(schema)).accepts(value)
    except ValueError:
        allowed = False
    return value if allowed else sample(schema, Random(0))


def _filled(schema: Any, root: dict[str, Any], name: str = "", deep: int = _DEEPEST, *, favourable: bool) -> Any:
    """A value for a schema as judge models are given: objects of options, numbers, flags and texts."""

    def inside(part: Any, named: str = name) -> Any:
        return _filled(part, root, named, deep - 1, favourable=favourable)

    match _plain(schema, root) if deep else None:
        case {"const": constant}:
            return constant
        case {"enum": [*options]} if options:
            return _chosen(options, favourable=favourable)
        case {"properties": dict(fields)}:
            plain_fields = {key: _plain(field, root) for key, field in fields.items()}
            decided = any("enum" in plain or _bounds(plain) for plain in plain_fields.values())
            return {
                key: _flag(key, favourable=favourable, decided=decided)
                if plain.get("type") == "boolean"
                else inside(fields[key], key)
                for key, plain in plain_fields.items()
            }
        case {"type": "array", "items": items, **rest}:
            least = rest.get("minItems")
            return [inside(items)] * (min(least, _MOST) if isinstance(least, int) and least > 1 else 1)
        case dict(plain):
            bounds = _bounds(plain)
            others = {"array": [], "object": {}, "boolean": favourable, "null": None}
            return bounds[favourable] if bounds else others.get(str(plain.get("type")), _REASON)
    return _REASON


def _plain(schema: Any, root: dict[str, Any]) -> dict[str, Any]:
    """A schema without references, unions and lists of types: the first branch that is not null."""
    for _ in range(_DEEPEST):
        if not isinstance(schema, dict):
            return {}
        branches = next((schema[key] for key in ("anyOf", "oneOf", "allOf") if schema.get(key)), None)
        if isinstance(reference := schema.get("$ref"), str):
            schema = root
            for part in reference.removeprefix("#").strip("/").split("/"):
                schema = schema.get(part) if isinstance(schema, dict) else None
        elif isinstance(branches, list):
            schema = next((each for each in branches if each != {"type": "null"}), branches[0])
        elif isinstance(kinds := schema.get("type"), list):
            schema = schema | {"type": next((kind for kind in kinds if kind != "null"), "null")}
        else:
            return schema
    return {}


def _bounds(schema: Mapping[str, Any]) -> tuple[Any, Any] | None:
    """The least and the most of a number; None of what is no number."""
    if schema.get("type") not in ("number", "integer"):
        return None
    least, most = schema.get("minimum"), schema.get("maximum")
    return (0 if least is None else least), (max(1, least or 0) if most is None else most)


def _leaning(text: object) -> int:
    """1 where a text speaks for an answer, -1 where it speaks against it, else 0."""
    words = [word.lower() for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", str(text))]
    if "!=" in str(text) or any(word in _NO or _AGAINST.match(word) for word in words):
        return -1
    return int(any(map(_FOR.match, words)))


def _chosen(options: list[Any], *, favourable: bool) -> Any:
    """The option that is most for an answer, or most against it; of numbers the largest or smallest."""
    if all(is_number(str(each)) for each in options):
        return (max if favourable else min)(options, key=float)
    leanings = [(_leaning(each), each) for each in options if each is not None] or [(0, None)]
    if favourable:
        return max(leanings, key=lambda one: one[0])[1]
    return min(reversed(leanings), key=lambda one: one[0])[1]


def _flag(name: str, *, favourable: bool, decided: bool) -> bool:
    """What a flag of this name is; where something beside it is the verdict, one that leans nowhere is not set."""
    leaning = _leaning(name)
    return favourable == (leaning > 0) if leaning else favourable and not decided


def _tagged(prompt: str, *, favourable: bool) -> Iterator[str]:
    """What is said within the tags that a prompt shows."""
    for tag, schema in shown_tags(prompt):
        yield f"<{tag}>{_filled(schema, schema, favourable=favourable)}</{tag}>"


def _lines(prompt: str, *, favourable: bool) -> Iterator[str]:
    """The lines that a prompt shows for a verdict: with an option for an answer and one against it, or with a score."""
    for name, schema in shown_lines(prompt):
        verdict = {-1, 1} <= set(map(_leaning, schema.get("enum", ())))
        if verdict or (_bounds(schema) and _SCORE.search(name)):
            yield f"{name}: {_filled(schema, schema, favourable=favourable)}"


def _labelled(prompt: str, words: str, *, favourable: bool) -> Iterator[str]:
    """One of the labels from which a prompt lets choose, unless the words have one of them."""
    labels = shown_labels(prompt)
    if len(labels) > 1 and not any(f"[[{label}]]" in words for label in labels):
        yield f"[[{_chosen(labels, favourable=favourable)}]]"
