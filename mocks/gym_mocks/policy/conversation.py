"""The requests of all APIs as one conversation."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

from gym_mocks.policy.items import Refuse, Say, Think, ToolCall, Turn, TurnItem

PolicyApi = Literal["responses", "chat", "messages", "completions", "vllm", "sglang"]
MARK = "gm"  # in every id that we give out: tells our turns from those a row's prompt came with


@dataclass(frozen=True, slots=True)
class Prompt:
    """A message that is not the policy's. `role` is system (developer too), user, or assistant in a row's example."""

    role: str
    text: str


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What a tool answered."""

    call_id: str
    text: str


ConversationEntry = Prompt | ToolResult | TurnItem


@dataclass(frozen=True, slots=True)
class TokensSeen:
    """The tokens up to here, as the client gives them back with the turn before: the prompt's and the turn's own."""

    prompt: Sequence[int]
    generation: Sequence[int]


#: A conversation as it is read: what others said, the policy's turns, and the tokens that came with one.
Segment = Prompt | ToolResult | Turn | TokensSeen


@dataclass(frozen=True, slots=True)
class RawPrompt:
    """A prompt that is no conversation: a text, or token ids.

    Attributes:
        text: as it was given, or what the policy's tokenizer makes of the ids.
        tokens: as they were given, or those of the text.
        turns: how many turns of the policy it holds.
        begun: what there is of a turn that is open at its end.
        as_ids: whether it was given as token ids.
    """

    text: str
    tokens: Sequence[int]
    turns: int
    begun: Sequence[int] = ()
    as_ids: bool = False


@dataclass(frozen=True)
class PolicyRequest:
    """One request to the policy, whichever API it came by.

    Attributes:
        api: the API it came by.
        body: the request's JSON object.
        api_key: of the Authorization or x-api-key header, without `Bearer`; empty where there is none.
        route: the route that took it; empty for the policy's default.
        counted: how many turns the tokens that came with it hold: clients may merge turns of reasoning alone.
        raw: its prompt, where that is no conversation; it is then read as one message of the user's.
    """

    api: PolicyApi
    body: dict[str, Any]
    api_key: str = field(default="", repr=False)
    route: str = ""
    counted: int = 0
    raw: RawPrompt | None = None

    @property
    def model(self) -> str:
        """The model asked for; empty where none is named."""
        model = self.body.get("model")
        return model if isinstance(model, str) else ""

    @cached_property
    def segments(self) -> tuple[Segment, ...]:
        """The conversation so far, each of the policy's turns apart."""
        if self.raw is not None:
            return (Prompt("user", self.raw.text),)
        read = tuple(READERS[self.api](self.body))
        required = self.body.get("required_prefix_token_ids")
        return _beginning_with(required, read) if required else read

    @cached_property
    def turns(self) -> tuple[Turn, ...]:
        """The policy's turns so far."""
        return tuple(segment for segment in self.segments if isinstance(segment, tuple))

    @cached_property
    def entries(self) -> tuple[ConversationEntry, ...]:
        """The conversation so far, entry by entry."""
        return tuple(_entries(self.segments))

    @property
    def step(self) -> int:
        """How many turns this policy has had in the conversation: 0 at its first."""
        return max(len(self.turns), self.counted)

    @property
    def prompt(self) -> tuple[Prompt, ...]:
        """What was said before the policy's first turn."""
        first = next((i for i, e in enumerate(self.entries) if not isinstance(e, Prompt)), len(self.entries))
        return tuple(entry for entry in self.entries[:first] if isinstance(entry, Prompt))

    @property
    def results(self) -> tuple[str, ...]:
        """What tools have answered so far."""
        return tuple(entry.text for entry in self.entries if isinstance(entry, ToolResult))

    @property
    def text(self) -> str:
        """The last thing that was said to the policy: a user's message or a tool's answer."""
        texts = (entry.text for entry in reversed(self.entries) if isinstance(entry, Prompt | ToolResult))
        return next(texts, "")

    @cached_property
    def tools(self) -> dict[str, dict[str, Any]]:
        """The JSON Schema of each function tool's parameters, by name."""
        schemas = ((_function(tool).get("name"), parameters(tool)) for tool in _objects(self.body.get("tools")))
        return {name: schema or {} for name, schema in schemas if isinstance(name, str)}


def recorded_turns(output: Sequence[Mapping[str, Any]]) -> tuple[Turn, ...]:
    """The policy's turns in a response's output; each assistant message is of one."""
    return tuple(segment for segment in _items(output, ours=True) if isinstance(segment, tuple))


def _entries(segments: Iterable[Segment]) -> Iterator[ConversationEntry]:
    for segment in segments:
        if isinstance(segment, tuple):
            yield from segment
        elif not isinstance(segment, TokensSeen):
            yield segment


def _beginning_with(tokens: Sequence[int], segments: tuple[Segment, ...]) -> tuple[Segment, ...]:
    """The conversation with these tokens for all up to its last turn."""
    last = max((at for at, segment in enumerate(segments) if isinstance(segment, tuple)), default=-1)
    if last < 0:
        return segments
    rest = segments[last + 1 :]
    own = bool(rest) and isinstance(rest[0], TokensSeen)
    return (*segments[: last + 1], TokensSeen(tokens, ()), *rest[own:])


def _responses(body: Mapping[str, Any]) -> Iterator[Segment]:
    if isinstance(body.get("instructions"), str):
        yield Prompt("system", body["instructions"])
    given = body.get("input")
    if isinstance(given, str):
        yield Prompt("user", given)
        return
    yield from _items(given, ours=False)


def _items(items: Any, *, ours: bool) -> Iterator[Segment]:
    """Read the Responses API's items.

    One turn ends where somebody else speaks, where an item is of another answer (its ids say of which), and behind
    the item that carries the turn's tokens, which is a turn's last. Before our first item, an assistant's message
    without an id of ours is a row's example; after it, it is ours, from a client that drops the ids of messages.
    """
    turn: list[TurnItem] = []
    answer = ""
    for item in _objects(items):
        ours = ours or answer_key(item) != ""
        said = _said(item, ours=ours)
        if turn and (
            isinstance(said, Prompt | ToolResult) or (said and answer and answer_key(item) not in {answer, ""})
        ):
            yield tuple(turn)
            turn, answer = [], ""
        if isinstance(said, TurnItem):
            turn.append(said)
            answer = answer or answer_key(item)
            if (seen := _tokens_seen(item)) is not None:
                yield tuple(turn)
                yield seen
                turn, answer = [], ""
        elif said is not None:
            yield said
    if turn:
        yield tuple(turn)


def _said(item: Mapping[str, Any], *, ours: bool) -> ConversationEntry | None:
    kind = item.get("type", "message")
    if kind == "function_call":
        return ToolCall(str(item.get("name")), str(item.get("arguments")))
    if kind == "function_call_output":
        return ToolResult(str(item.get("call_id")), _text(item.get("output")))
    if kind == "reasoning":
        return Think(_text(item.get("summary")))
    if kind != "message":
        return None
    content = item.get("content")
    if item.get("role") != "assistant" or not (ours or answer_key(item)):
        return Prompt(_role(item), _text(content))
    refusals = [part["refusal"] for part in _objects(content) if isinstance(part.get("refusal"), str)]
    return Refuse("".join(refusals)) if refusals else Say(_text(content))


def answer_key(item: Mapping[str, Any]) -> str:
    """Which of our answers an item is of: what its ids say; empty where it is of none, or they do not say."""
    for name in ("id", "call_id"):
        parts = str(item.get(name)).split("_")
        if MARK in parts[:-1]:
            return parts[parts.index(MARK) + 1]
    return ""


def _tokens_seen(item: Mapping[str, Any]) -> TokensSeen | None:
    """The token ids that an item or message carries, where both lists are there."""
    lists = [item.get("prompt_token_ids"), item.get("generation_token_ids")]
    if not all(isinstance(ids, list) and all(isinstance(token, int) for token in ids) for ids in lists):
        return None
    return TokensSeen(*lists)  # type: ignore[arg-type]  # both are lists of integers


def _chat(body: Mapping[str, Any]) -> Iterator[Segment]:
    for message in _objects(body.get("messages")):
        role, text = _role(message), _text(message.get("content"))
        if role == "tool":
            yield ToolResult(str(message.get("tool_call_id")), text)
        elif role != "assistant":
            yield Prompt(role, text)
        else:
            functions = _objects([call.get("function") for call in _objects(message.get("tool_calls"))])
            calls = [ToolCall(str(each.get("name")), str(each.get("arguments"))) for each in functions]
            reasoning = _text(message.get("reasoning_content")) or _text(message.get("reasoning"))
            yield merged_turn(reasoning, text, _text(message.get("refusal")), calls)
            if (seen := _tokens_seen(message)) is not None:
                yield seen


def merged_turn(reasoning: str, text: str, refusal: str, calls: Sequence[ToolCall]) -> Turn:
    """A turn as a chat message holds it: one text of each kind, and the calls last."""
    turn: list[TurnItem] = [Think(reasoning)] if reasoning else []
    if text or not (refusal or calls):
        turn.append(Say(text))
    return (*turn, *([Refuse(refusal)] if refusal else []), *calls)


def sent_back(api: PolicyApi, turn: Turn) -> Turn:
    """A turn as a client that keeps everything sends it back: merged or shortened where the API does so."""
    if api == "messages":
        return tuple(_as_block(item) for item in turn)
    if api != "chat":
        return turn
    reasoning, text, refusal = (
        "".join(item.text for item in turn if isinstance(item, kind)) for kind in (Think, Say, Refuse)
    )
    return merged_turn(reasoning, text, refusal, [item for item in turn if isinstance(item, ToolCall)])


def block_arguments(call: ToolCall) -> Any:
    """A call's arguments as the Messages API carries them; it has no malformed ones."""
    try:
        return json.loads(call.arguments)
    except ValueError:
        return {}


def _as_block(item: TurnItem) -> TurnItem:
    if isinstance(item, ToolCall):
        return ToolCall(item.name, json.dumps(block_arguments(item)))
    return item if isinstance(item, Think) else Say(item.text)


def _messages(body: Mapping[str, Any]) -> Iterator[Segment]:
    if body.get("system"):
        yield Prompt("system", _text(body["system"]))
    for message in _objects(body.get("messages")):
        role = _role(message)
        content = message.get("content")
        blocks = list(_objects(content)) if isinstance(content, list) else [{"type": "text", "text": content}]
        if role == "assistant":
            yield tuple(_block(block) for block in blocks)
            if (seen := _tokens_seen(message)) is not None:
                yield seen
            continue
        for block in blocks:
            if block.get("type") == "tool_result":
                yield ToolResult(str(block.get("tool_use_id")), _text(block.get("content")))
            else:
                yield Prompt(role, _text([block]))


def _block(block: Mapping[str, Any]) -> TurnItem:
    if block.get("type") == "tool_use":
        return ToolCall(str(block.get("name")), json.dumps(block.get("input")))
    return Think(str(block.get("thinking"))) if block.get("type") == "thinking" else Say(_text([block]))


def _raw(body: Mapping[str, Any]) -> Iterator[Segment]:
    """A prompt without a tokenizer: the text of one that is a text."""
    given = body.get("prompt", body.get("text"))
    yield Prompt("user", given if isinstance(given, str) else "")


READERS = {"responses": _responses, "chat": _chat, "messages": _messages} | dict.fromkeys(
    ("completions", "vllm", "sglang"), _raw
)


def _role(message: Mapping[str, Any]) -> str:
    role = str(message.get("role", "user"))
    return "system" if role == "developer" else role


def _text(content: Any) -> str:
    """The text of a content that is a string, or a list of parts."""
    if isinstance(content, str):
        return content
    return "".join(part["text"] for part in _objects(content) if isinstance(part.get("text"), str))


def parameters(tool: Mapping[str, Any]) -> Any:
    """The JSON Schema of a tool's arguments, in the form of any API; None where it has none."""
    function = _function(tool)
    return function.get("parameters", function.get("input_schema"))


def _function(tool: Mapping[str, Any]) -> Mapping[str, Any]:
    function = tool.get("function", tool)
    return function if isinstance(function, dict) else {}


def _objects(value: Any) -> Iterable[dict[str, Any]]:
    return (item for item in value if isinstance(item, dict)) if isinstance(value, list) else ()
