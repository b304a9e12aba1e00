import asyncio
import logging
import re
from collections import deque
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from http import HTTPStatus
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs

from gym_mocks.policy.answer import PolicyAnswer
from gym_mocks.policy.conversation import PolicyApi, PolicyRequest
from gym_mocks.policy.faults import FaultKind, Faults, PolicyFault, distorted
from gym_mocks.policy.policies import Policy, Said, echo, ending, generated, policy_of, replayed, scripted, turn_by
from gym_mocks.policy.policy_calls import Calls, PolicyCall
from gym_mocks.policy.raw_prompts import raw_prompt
from gym_mocks.policy.request_values import KEPT, refused_value, token_ids
from gym_mocks.policy.routes import Route, Routes
from gym_mocks.policy.shapes import SHAPES, AnswerShape
from gym_mocks.policy.stored_responses import StoredResponses
from gym_mocks.policy.tokens import TokenFields, TokensBy, counted_turns, prompt_tokens, tokenizer_of
from gym_mocks.wire import App, Dropped, Handler, HttpRefusal, HttpReply, HttpRequest, json_body, live
from gym_mocks.wire.bodies import is_json
from gym_mocks.wire.messages import JSON, to_json

if TYPE_CHECKING:
    import respx

# The rollout that a call is for, which agents of nemo-gym 0.5.1 and later put before the path
# (nemo_gym/base_responses_api_model.py strips it).
ROLLOUT_PREFIX = re.compile(r"^/ng-rollout/[A-Za-z0-9][A-Za-z0-9._-]*(/training-token-capture)?(?=/)")
#: Where Azure's clients ask, by a deployment's name or not, and Groq's.
OPENAI_PREFIX = re.compile(r"^/openai(/v1|/deployments/[^/]+)?(?=/)")
#: Which say that it lives; the last is SGLang's.
PROBES = ("/", "/health", "/livez", "/readyz", "/healthz", "/health_generate")
MODELS = "/v1/models"
KEPT_RESPONSE = re.compile(r"/v1/responses/([^/]+)(|/input_items)")
#: Where SGLang tells of itself, under today's name and yesterday's: its router asks there for the model's name.
ENGINE_INFO = ("/model_info", "/get_model_info", "/server_info", "/get_server_info", "/get_weight_version")
#: Where clients ask how long a request is, and by which API it is one.
COUNTED: dict[str, PolicyApi] = {"/v1/messages/count_tokens": "messages", "/v1/responses/input_tokens": "responses"}
#: By which Anthropic's clients, whose tool runner asks for a thread that the server keeps, know that they must do without.
THREADLESS = {"error_code": "thread_unsupported_request", "unsupported": ["thread"]}
MOST_VALUES = 2**22  # of a reply (`PolicyAnswer.values`): some 100 MB
MAX_LENGTH = 131_072  # tokens: what clients are told; nothing is cut there
#: What SGLang says of weights that it took; vLLM's clients read the status alone.
ACCEPTED = {"success": True, "message": ""}
# The chat template of this policy's conversations, for clients that render them.
TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message.role }}\n{{ message.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
PLAIN = (("content-type", "text/plain; charset=utf-8"),)
EVENT_STREAM = (("content-type", "text/event-stream; charset=utf-8"), ("cache-control", "no-cache"))

log = logging.getLogger("gym_mocks")

#: An answer or the fault that stands in its place, and what befalls the reply.
_Answered = tuple[PolicyAnswer | HttpReply, frozenset[FaultKind]]


class FakePolicy(App):
    """A policy behind an OpenAI-compatible server, which also accepts texts and token ids, as inference engines do (`SHAPES`).

    Attributes:
        default: the policy that answers if no route is bound.
        calls: the last requests that it received.
        faults: see `fail`.
        routes: the active routes.
        accepted: the last requests to the paths of `accept`.
        stored: the last responses, from which a client may go on by their ids.
        token_fields: whether replies have the token fields that trainers read (`TokenFields`).
        tokenizer: makes the tokens.

    Args:
        default: see above.
        token_fields: see above; true if `tokens` are given.
        tokens: a `Vocabulary`, or (size, end), whose ids have no meaning; or a Hugging Face tokenizer, whose ids decode
            to what was said.
        log_prob_scale: log probabilities are between 0 and minus this.
        routed_experts: (layers, experts per token) of the `routed_experts` of each turn; None for none.
        named_by_ids: log probabilities name tokens by their ids, as vLLM served with `--return-tokens-as-token-ids` does.
        max_turns: after this many turns the policy ends a conversation, whatever it would say.
        keep: how many calls to keep, and how many responses for `previous_response_id`.
        seed: for the faults' random choices.

    Raises:
        ValueError: `tokens` that cannot be used.
        TypeError: a `default` that is no function.
    """

    def __init__(
        self,
        default: Policy = echo,
        *,
        token_fields: bool = False,
        tokens: TokensBy | None = None,
        log_prob_scale: float = 1.0,
        routed_experts: tuple[int, int] | None = None,
        named_by_ids: bool = False,
        max_turns: int = 64,
        keep: int = 1000,
        seed: int = 0,
    ) -> None:
        self.default = policy_of(default)
        self.token_fields = token_fields or tokens is not None
        self.tokenizer = tokenizer_of(tokens)
        self.made = TokenFields(log_prob_scale, routed_experts, named_by_ids)
        self.max_turns = max_turns
        self.calls = Calls(keep)
        self.faults = Faults(seed)
        self.routes = Routes()
        self.accepted: deque[HttpRequest] = deque(maxlen=keep)
        self.stored = StoredResponses(keep)
        handlers = {("POST", path): self._complete for path in SHAPES}
        probes = {("GET", path): live for path in PROBES}
        tokenizing = {
            **dict.fromkeys((("POST", "/tokenize"), ("POST", "/v1/tokenize")), self._tokenize),
            **dict.fromkeys((("POST", "/detokenize"), ("POST", "/v1/detokenize")), self._detokenize),
            ("POST", "/v1/chat/completions/render"): self._render,
        }
        counting = {("POST", path): partial(self._count, api=api) for path, api in COUNTED.items()}
        told = {("GET", MODELS): self._models, ("GET", "/tokenizer_info"): self._tokenizer_info}
        engine = {("GET", path): self._engine for path in ENGINE_INFO}
        super().__init__({**handlers, **probes, **tokenizing, **counting, **told, **engine})

    def bind(self, route: str, policy: Policy, *, api_key: str = "") -> Route:
        """Bind a policy, sync or async, to a route: a model name, or an API key."""
        return self.routes.bind(route, policy_of(policy), api_key=api_key)

    def script(self, route: str, turns: Sequence[Said], *, api_key: str = "") -> Route:
        """Bind a script: what to say at each turn."""
        return self.bind(route, scripted(turns), api_key=api_key)

    def replay(self, route: str, rollouts: Iterable[Mapping[str, Any]], *, api_key: str = "") -> Route:
        """Bind a policy that repeats recorded rollouts."""
        return self.bind(route, replayed(rollouts), api_key=api_key)

    def generate(self, route: str, *, api_key: str = "", **choices: Any) -> Route:
        """Bind a policy that calls the request's own tools; `choices` are those of `generated`."""
        return self.bind(route, generated(**choices), api_key=api_key)

    def accept(self, *paths: str, reply: Any = ACCEPTED) -> None:
        """Answer GET and POST requests to these paths from now on, as an engine that is given weights, paused or put to sleep.

        A reply that is a text is sent unchanged, as an engine's metrics are.

        Raises:
            ValueError: a path that no request could have.
        """
        if wrong := next((path for path in paths if not path.startswith("/")), None):
            raise ValueError(f"a path begins with a slash: not {wrong!r:.80}")
        answer = HttpReply(200, reply.encode(), PLAIN) if isinstance(reply, str) else HttpReply.json(reply)

        async def handler(request: HttpRequest) -> HttpReply:
            self.accepted.append(request)
            if named := _named_weights(request):
                self.made = replace(self.made, weight_version=named)
            return answer

        self.handlers |= {(method, path): handler for method in ("GET", "POST") for path in paths}

    def fail(self, fault: PolicyFault) -> None:
        """Let a fault happen from now on."""
        self.faults.add(fault)

    def mount(self, router: "respx.MockRouter", *, base_url: str) -> "respx.Route":
        """Answer httpx-based clients of a base URL in this process, through respx."""
        from gym_mocks.policy.mounting import mount  # noqa: PLC0415 - respx is optional

        return mount(self, router, base_url)

    def find(self, request: HttpRequest) -> Handler:
        """The handler of a request; a model has a path of its own, whose name may be anything, and a response that is kept."""
        if kept := KEPT_RESPONSE.fullmatch(request.path):
            handler = {"": self._response, "/input_items": self._input_items}[kept[2]]
            if request.method == "GET" or (request.method == "DELETE" and not kept[2]):
                return partial(handler, name=kept[1])
        name = request.path.removeprefix(f"{MODELS}/")
        known = name != request.path and name and (not len(self.routes) or self.routes.find(name, ""))
        return partial(self._model, name=name) if known and request.method == "GET" else super().find(request)

    async def dispatch(self, request: HttpRequest) -> HttpReply:
        """Answer; refusals have the shape that OpenAI's clients read."""
        try:
            path = OPENAI_PREFIX.sub("/v1", ROLLOUT_PREFIX.sub("", request.path))
            asked = request if path == request.path else replace(request, path=path)
            return await self.find(asked)(asked)
        except HttpRefusal as refused:
            where, served = "", ""
            if refused.status in {HTTPStatus.NOT_FOUND, HTTPStatus.METHOD_NOT_ALLOWED}:
                where = f"{request.method} {request.path}: "
                served = f"; this policy serves {', '.join(path for _, path in self.handlers if path not in PROBES)}"
            return _error(
                refused.status, refused.detail, refused.headers, where=where, served=served, code=refused.code
            )
        except Exception as error:
            log.exception("%s %s failed", request.method, request.path)
            return _error(500, repr(error))

    async def _complete(self, request: HttpRequest) -> HttpReply:
        shape = SHAPES[request.path]
        api, body = shape.api, _object(request)
        if api == "messages" and body.get("thread"):
            return _error(400, f"thread: {KEPT}", details=THREADLESS)
        several = shape.parts(body) if shape.parts else None
        parts = [body] if several is None else several
        if why := next(filter(None, (refused_value(api, part) for part in parts)), None):
            raise HttpRefusal(400, why)
        if api == "responses":
            parts = [self.stored.whole(body)]
        keys = (
            request.headers.get(name, "").removeprefix("Bearer ") for name in ("authorization", "x-api-key", "api-key")
        )
        key = next(filter(None, keys), "")
        asked = PolicyRequest(api, body, key)
        route = self._route(asked, request.body)
        asked = replace(asked, route=route.name if route else "")
        with_ids = b"prompt_token_ids" in request.body or body.keys() & {
            "previous_response_id",
            "required_prefix_token_ids",
        }
        requests = [self._read(replace(asked, body=part), with_ids=bool(with_ids)) for part in parts]
        policy = route.policy if route else self.default
        answering = [self._answer(each, policy) for each in requests]
        answered = [await answering[0]] if len(requests) == 1 else await asyncio.gather(*answering)
        reply = _reply_of(answered, shape, joined=several is not None)
        for part, (answer, kinds) in zip(parts, answered, strict=True):
            raw = request.body if several is None else to_json(part)
            turn = answer.turn if isinstance(answer, PolicyAnswer) else ()
            self.calls.add(PolicyCall(api, raw, asked.route, reply.status, turn))
            if api == "responses" and isinstance(answer, PolicyAnswer) and body.get("store") is not False:
                sent = reply.body if isinstance(reply.body, bytes) and not kinds else None
                self.stored.keep(answer.id("resp"), request.body, sent or to_json(shape.whole(answer)))
        return reply

    def _route(self, asked: PolicyRequest, raw: bytes) -> Route | None:
        """The route that a request is for; None while none is bound.

        Raises:
            HttpRefusal: routes are bound, and none of them is meant.
        """
        route = self.routes.find(asked.model, asked.api_key)
        if route is None and len(self.routes):
            self.calls.add(PolicyCall(asked.api, raw, "", 409))
            named = f"{', '.join(sorted(self.routes.names)):.200}"
            unknown = (
                f"no active rollout is named {asked.model!r:.100}" if asked.model else "the request names no model"
            )
            raise HttpRefusal(409, f"{unknown}; there are {named}")
        return route

    def _read(self, asked: PolicyRequest, *, with_ids: bool) -> PolicyRequest:
        """A request with what its tokens say, where it is made of tokens or comes with those of a turn."""
        asked = replace(asked, raw=raw_prompt(asked.api, asked.body, self.tokenizer))
        if asked.body.get("messages") == [] and not asked.raw:
            raise HttpRefusal(400, "messages: one at least is expected")
        return replace(asked, counted=counted_turns(asked, self.tokenizer)) if asked.raw or with_ids else asked

    async def _answer(self, asked: PolicyRequest, policy: Policy) -> _Answered:
        faults = self.faults.strike(asked) if asked.step < self.max_turns else []
        if delay := self.faults.delay(faults):
            await asyncio.sleep(delay)
        for fault in faults:
            if fault.kind == "status":
                after = () if fault.retry_after is None else (("retry-after", f"{fault.retry_after:g}"),)
                return _error(fault.status, fault.message, after, code=fault.code), frozenset()
        turn = distorted(await turn_by(ending(policy, self.max_turns), asked), faults)
        kinds = frozenset(fault.kind for fault in faults)
        answer = PolicyAnswer.of(asked, turn, self.tokenizer, self.made, token_fields=self.token_fields, kinds=kinds)
        return answer, kinds

    async def _models(self, _: HttpRequest) -> HttpReply:
        return HttpReply.json({"object": "list", "data": [_told(name) for name in self.routes.names or ("mock",)]})

    async def _model(self, _: HttpRequest, *, name: str) -> HttpReply:
        return HttpReply.json(_told(name))

    async def _response(self, request: HttpRequest, *, name: str) -> HttpReply:
        """A response that is kept, as OpenAI and vLLM give it again; OpenAI deletes it, too."""
        said = self.stored.said(name)
        if said is None:
            return _error(404, f"Response with id {name!r:.100} not found.")
        if request.method == "DELETE":
            self.stored.forget(name)
            return HttpReply.json({"id": name, "object": "response", "deleted": True})
        if parse_qs(request.query).get("stream") == ["true"]:
            return _error(400, "stream: not supported for a response that was not made in the background")
        return HttpReply(200, said, (("content-type", JSON),))

    async def _input_items(self, request: HttpRequest, *, name: str) -> HttpReply:
        """What a response that is kept answers, as OpenAI lists it: the newest first, all on one page."""
        if self.stored.said(name) is None:
            return _error(404, f"Response with id {name!r:.100} not found.")
        items = self.stored.input_items(name)[:: 1 if "order=asc" in request.query else -1]
        ends = {"first_id": items[0]["id"], "last_id": items[-1]["id"]} if items else {}
        return HttpReply.json({"object": "list", "data": items, "has_more": False, **ends})

    async def _engine(self, _: HttpRequest) -> HttpReply:
        """What SGLang tells of itself and of its model, and vLLM beside it, which TRL's asynchronous trainer asks."""
        name = next(iter(self.routes.names), "mock")
        paths = dict.fromkeys(("model_path", "served_model_name", "tokenizer_path"), name)
        more: dict[str, Any] = {
            "weight_version": self.made.weight_version,
            "preferred_sampling_params": None,
            "internal_states": [],
        }
        config = {"model_config": {"model": name, "dtype": "torch.bfloat16"}, "lora_config": None}
        vllm = {"vllm_config": config | {"parallel_config": {"data_parallel_size": 1}}}
        return HttpReply.json({**paths, "is_generation": True, "tp_size": 1, "dp_size": 1, **more, **vllm})

    async def _tokenizer_info(self, _: HttpRequest) -> HttpReply:
        """What vLLM tells of its tokenizer, which lm-eval asks for."""
        end = self.tokenizer.decoded([self.tokenizer.end])
        return HttpReply.json({"eos_token": end, "bos_token": None, "pad_token": None, "chat_template": TEMPLATE})

    async def _tokenize(self, request: HttpRequest) -> HttpReply:
        body = _object(request)
        prompt = body.get("prompt")
        if isinstance(prompt, list) and all(isinstance(each, str) for each in prompt):  # as SGLang takes them
            lists = [list(self.tokenizer.text(text)) for text in prompt]
            return HttpReply.json({"count": [*map(len, lists)], "max_model_len": MAX_LENGTH, "tokens": lists})
        if isinstance(prompt, str):
            tokens = list(self.tokenizer.text(prompt))
        else:
            opened = body.get("add_generation_prompt", True) is not False
            # nemo-gym 0.7.0's vllm_model_with_compaction takes a response's input, too.
            asked = _asked("responses" if "input" in body else "chat", body)
            tokens = prompt_tokens(asked, self.tokenizer, open_turn=opened)
        named = [self.tokenizer.decoded([token]) for token in tokens] if body.get("return_token_strs") else None
        sizes = {"count": len(tokens), "max_model_len": MAX_LENGTH}
        return HttpReply.json({**sizes, "tokens": tokens, "token_strs": named})

    async def _render(self, request: HttpRequest) -> HttpReply:
        """The request for tokens that vLLM would make of one for a chat."""
        asked = _asked("chat", _object(request))
        rendered: dict[str, Any] = {
            "token_ids": prompt_tokens(asked, self.tokenizer),
            "features": None,
            "sampling_params": {},
        }
        return HttpReply.json({"request_id": "render", "model": asked.model, "stream": False, **rendered})

    async def _count(self, request: HttpRequest, *, api: PolicyApi) -> HttpReply:
        """How many tokens a request would be read as."""
        count = len(prompt_tokens(PolicyRequest(api, _object(request)), self.tokenizer))
        return HttpReply.json({"object": "response.input_tokens", "input_tokens": count})

    async def _detokenize(self, request: HttpRequest) -> HttpReply:
        body = _object(request)
        tokens: Any = body.get("tokens")
        if isinstance(tokens, list) and tokens and all(map(token_ids, tokens)):  # as SGLang takes them
            return HttpReply.json({"text": [self.tokenizer.decoded(each) for each in tokens]})
        if not token_ids(tokens):
            raise HttpRefusal(400, "tokens: a list of token ids is expected")
        text = self.tokenizer.decoded(tokens)
        return HttpReply.json({"prompt": text, "text": text})  # as vLLM names it, and as SGLang does


def _named_weights(request: HttpRequest) -> str | None:
    """What a client of SGLang calls the weights that it gives or has given; None where it names none."""
    body = json_body(request) if request.body and is_json(request.headers.get("content-type", "")) else None
    names = [body.get(name) for name in ("weight_version", "new_version")] if isinstance(body, dict) else []
    return next((name for name in names if isinstance(name, str)), None)


def _told(name: str) -> dict[str, Any]:
    """What is told of a model."""
    return {"id": name, "object": "model", "created": 0, "owned_by": "gym-mocks", "max_model_len": MAX_LENGTH}


def _object(request: HttpRequest) -> dict[str, Any]:
    """The JSON object of a request's body."""
    if request.body and not is_json(request.headers.get("content-type", "")):
        raise HttpRefusal(415, "the request must say Content-Type: application/json")
    body = json_body(request)
    if not isinstance(body, dict):
        raise HttpRefusal(400, "the request is no JSON object")
    return body


def _asked(api: PolicyApi, body: dict[str, Any]) -> PolicyRequest:
    """A request that is asked for its tokens alone."""
    if why := refused_value(api, body):
        raise HttpRefusal(400, why)
    return PolicyRequest(api, body)


def _reply_of(answered: Sequence[_Answered], shape: AnswerShape, *, joined: bool) -> HttpReply:
    """One reply to all that one request asked; the first fault where one stands in an answer's place."""
    refusals = [answer for answer, _ in answered if isinstance(answer, HttpReply)]
    answers = [answer for answer, _ in answered if isinstance(answer, PolicyAnswer)]
    if sum(answer.values for answer in answers) > MOST_VALUES:
        fewer = "ask for fewer choices, prompts or log probabilities at once"
        raise HttpRefusal(400, f"the reply would have more than {MOST_VALUES:,} values: {fewer}")
    kinds = frozenset[FaultKind]().union(*(struck for _, struck in answered))
    return refusals[0] if refusals else _rendered(answers, shape, kinds, joined=joined)


def _rendered(
    answers: Sequence[PolicyAnswer], shape: AnswerShape, kinds: frozenset[FaultKind], *, joined: bool
) -> HttpReply:
    if answers[0].request.body.get("stream"):
        lines = shape.lines(answers[0])  # of several prompts none is streamed
        broken = kinds & {"drop", "truncate", "invalid_json"}
        return HttpReply(200, _stream(_broken_off([*lines], broken) if broken else lines, kinds), EVENT_STREAM)
    replies = [shape.whole(answer) for answer in answers]
    body = to_json(shape.joined(replies) if joined else replies[0])
    if kinds & {"drop", "truncate"}:
        half, headers = body[: len(body) // 2], (("content-type", JSON), ("content-length", str(len(body))))
        return HttpReply(200, _stream([half], frozenset({"drop"})), headers)
    return HttpReply(200, body[:-1] if "invalid_json" in kinds else body, (("content-type", JSON),))


def _broken_off(lines: list[bytes], kinds: frozenset[FaultKind]) -> list[bytes]:
    """The first half of a stream's lines, or all of them with an event in their middle that is no JSON."""
    if kinds == {"invalid_json"}:
        middle = (len(lines) - 1) // 2
        return [*lines[:middle], lines[middle].rstrip()[:-1] + b"\n\n", *lines[middle + 1 :]]
    return lines[: len(lines) // 2 + ("drop" in kinds)]


async def _stream(lines: Iterable[bytes], kinds: frozenset[FaultKind] = frozenset()) -> AsyncIterator[bytes]:
    for line in lines:
        yield line
        await asyncio.sleep(0)
    if "drop" in kinds:
        raise Dropped


def _error(
    status: int,
    detail: Any,
    headers: tuple[tuple[str, str], ...] = (),
    *,
    where: str = "",
    served: str = "",
    details: Mapping[str, Any] | None = None,
    code: str | None = None,
) -> HttpReply:
    kind = "invalid_request_error" if status < HTTPStatus.INTERNAL_SERVER_ERROR else "server_error"
    if status == HTTPStatus.TOO_MANY_REQUESTS:
        kind = "rate_limit_error"
    wrong = [detail] if isinstance(detail, str) else [f"{each['loc'][0]}: {each['msg']}" for each in detail]
    field = wrong[0].partition(":")[0]  # our refusals of a value begin with its name
    param = field if status == HTTPStatus.BAD_REQUEST and field.isidentifier() and field != wrong[0] else None
    error: dict[str, Any] = {"message": where + "; ".join(wrong) + served, "type": kind, "param": param, "code": code}
    error |= {"details": details} if details else {}
    # Anthropic's clients know an error by its `type`: without it, Vercel's provider shows no message
    return HttpReply.json({"type": "error", "error": error, "detail": detail}, status, headers)
