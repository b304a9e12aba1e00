"""Whether a reply may refuse its call, by its status or, for a 2xx, by its wording. A suspicion, never a verdict."""

import json
import re
from http import HTTPStatus
from itertools import islice
from typing import Any, Final

from gym_conformance.contract.statuses import UNROUTED, is_refusal, is_success
from gym_conformance.session.exchange import Reply
from gym_schemas import mapped, scalars

#: Refusals that say nothing about the arguments, but about the caller, the path, the method, the state, or the rate.
_OTHER_REFUSALS: Final = UNROUTED | {
    HTTPStatus.UNAUTHORIZED,
    HTTPStatus.FORBIDDEN,
    HTTPStatus.PROXY_AUTHENTICATION_REQUIRED,
    HTTPStatus.CONFLICT,
    HTTPStatus.GONE,
    HTTPStatus.TOO_MANY_REQUESTS,
}

#: Words of refusals, in the languages in which environments speak: English, German, French, Spanish, Italian and
#: Portuguese, Russian, Chinese, Japanese and Korean. The number of a thing is none of them: `{"no": 12}`, or `no. 12`.
_WORDS: Final = (
    r"error|invalid|unknown|unexpected|illegal|wrong|bad\b|fail|refus|reject|denied|missing|required",
    r"must|cannot|can't|\bno\b(?!\. ?\d|\":)|\bnot\b|n't\b|allowed|expected|usage",
    r"fehler|ungültig|unbekannt|falsch|fehlt|unzulässig|\bnicht\b|\bkeine?\b|\bmuss\b|erlaubt",
    r"erreur|inconnu|manquant|incorrect|\bpas\b|\bdoit\b|\baucune?\b|requis",
    r"inválid|desconoc|incorrec|\bfalta|\bdebe\b|ningun",
    r"sconosciut|\bnon\b|\bmanca|\bdeve\b|nessun|\berro\b|desconhec|\bnão\b|nenhum",
    r"ошибк|недопустим|неверн|неизвестн|отсутств|\bне\b|\bнет\b|нельзя|должн",  # noqa: RUF001 - Russian
    "错误|錯誤|无效|無效|未知|失败|失敗|缺少|必须|必須|无法|無法|没有|沒有|不",
    "エラー|無効|不明|必要|誤り|ません|ない",
    "오류|잘못|알 수 없|필요|실패|없|않",
)

#: A 2xx is a refusal only if it contains one of these words, or starts with one of these signs: `#REF!`, and no
#: heading such as `# Goods`.
_NO: Final = re.compile("|".join((*_WORDS, r"\A\W*(?:#\w|!)")), re.IGNORECASE)

#: Values, and characters of a text, from which on a reply says more than a refusal does.
_MANY, _LONG = 12, 300

#: Characters at either end of a reply in which a refusal is looked for: with megabytes it would take a second.
_SEARCHED = 8192

#: The types of pydantic's errors that a validator raises which the server's author has written.
_OWN_WORDS: Final = frozenset({"value_error", "assertion_error"})

#: What a text begins with that is plainly an error.
_ERROR: Final = re.compile(r"\W*(?:errore?|erro|fehler|erreur|ошибка|错误|錯誤|エラー|오류)\b", re.IGNORECASE)


def says_no(reply: Reply, asked: Any = None) -> bool:
    """Whether the reply may be a refusal of the arguments, by its status or, for a 2xx, by its wording.

    What the call itself `asked` counts for nothing: a reason such as "no longer needed" comes back in the reply.
    """
    if is_success(reply.status):
        return _has_no(reply.said, asked)
    return is_refusal(reply.status) and reply.status not in _OTHER_REFUSALS


def _has_no(value: Any, asked: Any = None) -> bool:
    """Whether it has a word of refusals, and has one, too, without what the call asked."""
    return _has_word(value) and (asked is None or _has_word(_without(value, asked)))


def _has_word(value: Any) -> bool:
    """Whether a text, or anything else as JSON in which no letter is escaped, has a word of refusals at either end."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    ends = text if len(text) <= 2 * _SEARCHED else f"{text[:_SEARCHED]}\n{text[-_SEARCHED:]}"
    return _NO.search(ends) is not None


def _without(value: Any, asked: Any) -> Any:
    """The value without the texts that the call gave, as whole words."""
    texts = (text for text, _ in islice(scalars(asked), _MANY) if isinstance(text, str) and 0 < len(text) <= _LONG)
    given = list(map(re.escape, texts))
    pattern = re.compile(rf"(?<!\w)(?:{'|'.join(given)})(?!\w)")
    return mapped(value, lambda each, _: pattern.sub("", each) if given and isinstance(each, str) else each)


def says_yes(reply: Reply, asked: Any = None) -> bool:
    """Whether the reply is a 2xx without any word that a refusal might have, but for what the call `asked`."""
    return is_success(reply.status) and not says_no(reply, asked)


def places(reply: Reply) -> list[list[Any]]:
    """The locations of the errors in FastAPI's 422: `{"detail": [{"loc": ["body", "city"], ...}]}`."""
    details = reply.fields.get("detail")
    found = (detail.get("loc") for detail in details if isinstance(detail, dict)) if isinstance(details, list) else ()
    return [place for place in found if isinstance(place, list)]


def is_in_own_words(reply: Reply) -> bool:
    """Whether FastAPI's 422 has nothing but what validators say that the server's author has written.

    So a pydantic validator says that an end comes before its begin, or that a text is no IBAN, which no JSON Schema could
    have told. Where it is the value that its definition does not allow, pydantic says so in its own words.
    """
    details = reply.fields.get("detail", ())
    return bool(places(reply)) and all(
        isinstance(detail, dict) and detail.get("type") in _OWN_WORDS for detail in details
    )


def says_error(reply: Reply) -> bool:
    """Whether a reply, of any status, is plainly an error by its form: `{"error": ...}`, `{"ok": false}`, `Error: ...`."""
    said = reply.said
    fails = isinstance(said, dict) and said.get("ok", said.get("success")) is False
    return fails or names_error(reply)


def names_error(reply: Reply) -> bool:
    """The same without `{"ok": false}`, which an attempt may say that was made and failed, as in a game.

    A text that is all there is in an object counts as if it stood alone: `{"output": "Error: ..."}`.
    """
    said = reply.said
    if isinstance(said, dict):
        if said.get("error") or said.get("errors"):
            return True
        said = next(iter(said.values())) if len(said) == 1 else None
    return isinstance(said, str) and _ERROR.match(said) is not None


def may_tell_of_refusal(value: Any, asked: Any = None) -> bool:
    """Whether what a reply lists may be something that was refused: by a false, or by a word that the call did not say."""
    return _has_no(value, asked) or any(part is False for part, _ in scalars(value))


def refuses(reply: Reply, asked: Any = None) -> bool:
    """Whether a 2xx may be a refusal: by its form, or by its wording if it is no longer than a refusal would be.

    The subject of a mail, or the description of a room, may also contain "not" or "wrong".
    """
    parts = list(islice(scalars(reply.said), _MANY))
    long = len(parts) == 1 and isinstance(parts[0][0], str) and len(parts[0][0]) >= _LONG
    return says_error(reply) or (len(parts) < _MANY and not long and says_no(reply, asked))


def grants(reply: Reply, asked: Any = None) -> bool:
    """Whether the reply is a 2xx that refuses nothing of what was `asked`."""
    return is_success(reply.status) and not refuses(reply, asked)
