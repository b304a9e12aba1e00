import json
import math
from typing import Any, NoReturn

from gym_mocks.wire.messages import HttpRequest

# The shapes below are FastAPI's, which every nemo-gym server answers with (fastapi/routing.py and
# fastapi/exception_handlers.py; held against the real thing in tests/nemo_gym/mocks).


class HttpRefusal(Exception):
    """A handler refuses the request: the reply is `{"detail": detail}` with `status`; OpenAI's clients may know a `code`."""

    def __init__(
        self, status: int, detail: Any, headers: tuple[tuple[str, str], ...] = (), *, code: str | None = None
    ) -> None:
        super().__init__(status, detail)
        self.status = status
        self.detail = detail
        self.headers = headers
        self.code = code


def json_body(request: HttpRequest) -> Any:
    """The request's body as JSON.

    NaN and the infinities are no JSON and are refused too. (Python's parser takes them, and then nemo-gym
    fails to serialise its own refusal.)

    Raises:
        HttpRefusal: 422 where the body is missing, not declared as JSON or not JSON; 400 where it is no text.
    """
    if not request.body:
        raise HttpRefusal(422, [{"type": "missing", "loc": ["body"], "msg": "Field required", "input": None}])
    if not is_json(request.headers.get("content-type", "")):
        raise HttpRefusal(422, [not_an_object(request.body.decode(errors="replace"))])
    try:
        return DECODER.decode(request.body.decode(json.detect_encoding(request.body), "surrogatepass"))
    except json.JSONDecodeError as error:
        detail = {"type": "json_invalid", "loc": ["body", error.pos], "msg": "JSON decode error", "input": {}}
        raise HttpRefusal(422, [detail | {"ctx": {"error": error.msg}}]) from None
    except (ValueError, RecursionError):  # bytes that are no text, a number of 5,000 digits, 10,000 brackets
        raise HttpRefusal(400, "There was an error parsing the body") from None


def not_an_object(value: Any) -> dict[str, Any]:
    """The error of a 422 for a body that is JSON but no object."""
    message = "Input should be a valid dictionary or object to extract fields from"
    return {"type": "model_attributes_type", "loc": ["body"], "msg": message, "input": value}


def is_json(content_type: str) -> bool:
    """Whether a content type is JSON's, or that of a format made of JSON."""
    kind, _, subtype = content_type.partition(";")[0].strip().lower().partition("/")
    return kind == "application" and (subtype == "json" or subtype.endswith("+json"))


def _finite(text: str) -> float:
    number = float(text)
    return number if math.isfinite(number) else _no_constant(text[:40])


def _no_constant(name: str) -> NoReturn:
    raise json.JSONDecodeError(f"{name} is not JSON", name, 0)


DECODER = json.JSONDecoder(parse_constant=_no_constant, parse_float=_finite)
