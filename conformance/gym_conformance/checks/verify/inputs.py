"""`POST /verify` takes whatever a policy or a client sends: every row, degenerate outputs, no session, malformed requests.

Source: `BaseVerifyRequest` in nemo_gym/base_resources_server.py (every version).
"""

import json
from contextlib import suppress
from dataclasses import replace
from http import HTTPStatus
from sys import float_info
from typing import Any, Final

from gym_conformance.contract.dataset_rows import Row
from gym_conformance.contract.endpoints import VERIFY
from gym_conformance.contract.policy_output import (
    DO_NOTHING,
    EMPTY_TEXT,
    LONG_NUMBER,
    LONG_TEXT,
    OPEN_BRACKETS,
    RAW_SURROGATE,
    REPLACED_SURROGATE,
    SLIPS,
    Degenerate,
    function_call,
    message,
    response,
    turns_with_tokens,
)
from gym_conformance.contract.session_cookies import NO_COOKIES, Cookies
from gym_conformance.contract.statuses import is_error, is_success
from gym_conformance.contract.verify_reply import is_masked, is_number
from gym_conformance.grouping import first_of_each
from gym_conformance.session.contracts import post
from gym_conformance.session.exchange import Reply, reply_of
from gym_conformance.session.refusals import places
from gym_conformance.session.server_fault import Fault, NotSent, ServerFault
from gym_conformance.session.unserved import NO_SUCH_TOOL
from gym_conformance.trajectories.renaming import own
from gym_conformance.trials.check import check
from gym_conformance.trials.ending import NotApplicable, Violation
from gym_conformance.trials.in_form import expect_number
from gym_conformance.trials.needs import RESOURCES_SERVER, SCORE, TOOLS, each_degenerate_output, each_row
from gym_conformance.trials.trial import Trial, describe, expect_no_crash, expect_object, expect_success, refuse_made_up
from gym_schemas import scalars

#: Rows unlike the first, and characters of the outputs that are verified in them, too.
_UNLIKE: Final = 2
_SHORT: Final = 400

#: Rows in which an empty text is verified: whatever takes it apart may do so in some rows alone.
_SILENT: Final = 12

#: Deadlines in which a server comes to the end of what took it too long.
_CATCHING_UP: Final = 4


@check(
    "verify-scores-rows",
    "verify MUST score every row",
    why="otherwise the agent raises, and the row's rollout is lost after all its tokens have been paid for.",
    needs=[RESOURCES_SERVER],
    subjects=each_row,
    beside=True,
    gentle=True,
)
async def verify_scores_rows(trial: Trial, row: Row) -> None:
    """Seeds each row and verifies a message that does nothing, and the output of a recorded rollout if there is one.

    The reply must be 200 with a JSON object that the agent can read: no text in it that ends within a surrogate pair, as
    one cut after so many UTF-16 units does, and no number that is too large for a double, unless they were sent. If each
    of them masks its sample, a caution says that no score was seen.

    Source: `SimpleAgent.run` raises for any other status, and reads the reply with orjson (`get_response_json` in
    nemo_gym/server_utils.py), which refuses both (0.4.0 to 0.7.0).
    """
    hint = "verify's request model does not match the dataset, or the scorer fails on this row."
    recorded = [response(rollout.output) for rollout in trial.gym.recorded.get(row, ())[:1]]
    scored = False
    for output in (DO_NOTHING.response, *recorded):
        reply = await trial.verify_fresh(output, row)
        scored |= not is_masked(reply.said)
        if output in recorded and _refused_by_type(reply):
            continue  # recorded by an older version, with values that today's OpenAI types refuse
        if not _refused_by_type(reply):
            refuse_made_up(row, reply)
        expect_success(reply, hint)
        expect_object(reply, "verify returns None, or its reply contains NaN, which is not JSON.")
        said = {**reply.json(), "reward": None}  # see verify-reward-finite
        if (unread := _unread(said)) and not _unread([row.data, output]):
            cut = "A text was cut in the middle of a character, or a number has overflowed."
            raise Violation("a reply that the agent's JSON parser (orjson) reads", f"it contains {unread}", cut)
    if not scored:
        trial.caution = "verify masks each sample that was tried, as after a failure of its own: no score was seen"


def _unread(value: Any) -> str:
    """What it is about a JSON value that orjson refuses; empty if it reads it."""
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        return f"half of a surrogate pair, {error.object[error.start]!a}"
    numbers = (each for each, _ in scalars(value) if isinstance(each, int | float))
    return "" if all(abs(number) <= float_info.max for number in numbers) else "a number that no double holds"


def _refused_by_type(reply: Reply) -> bool:
    """Whether NeMo Gym's own response type refused the request: a 422 that points below `response`."""
    found = places(reply) if reply.status == HTTPStatus.UNPROCESSABLE_ENTITY else []
    return bool(found) and all(place[:2] == ["body", "response"] for place in found)


def _degenerate_outputs(trial: Trial) -> tuple[Degenerate, ...]:
    """The degenerate outputs; those that are short on the rows least like the first, too, and an empty text on more.

    Rows may be scored in ways of their own.
    """
    outputs = each_degenerate_output(trial)
    short = [each for each in outputs if each.stock and not each.row and len(str(each.items)) < _SHORT]
    kinds = first_of_each(_fields, trial.gym.rows)
    first = _fields(trial.gym.row)
    others = sorted((fields for fields in kinds if fields != first), key=lambda fields: len(fields & first))[:_UNLIKE]
    unlike = [kinds[fields] for fields in others]
    silent = [each for each in short if each.name == EMPTY_TEXT]
    further = [(row, silent) for row in trial.gym.rows[1:_SILENT] if row not in unlike]
    tried = (*((row, short) for row in unlike), *further)
    return (*outputs, *(replace(each, name=f"{each}, on {row}", row=row) for row, several in tried for each in several))


def _fields(row: Row) -> frozenset[Any]:
    """Where something stands in a row's own fields, and of which type."""
    return frozenset((type(value), *(key for key in way if isinstance(key, str))) for value, way in scalars(own(row)))


@check(
    "verify-degenerate",
    "verify MUST score degenerate policy outputs",
    why="early in training most outputs are degenerate; each crash loses a rollout and skews what the policy learns from.",
    needs=[RESOURCES_SERVER, SCORE],
    subjects=_degenerate_outputs,
    beside=True,
)
async def verify_degenerate(trial: Trial, output: Degenerate) -> None:
    """Verifies the first row with odd outputs: empty, cut off, reasoning only, malformed calls, NUL, very long and more.

    The short ones are also verified in the two rows that differ most from it, an empty text in ten further rows, and
    recorded answers in their own rows, with their numbers replaced by numbers of 5,000 digits. Each output must be scored
    with 200, and with a finite number if a message that does nothing is. If NeMo Gym's own types cannot read an output, a
    422 passes here, and verify-framework-types reports it.

    Source: the output types in nemo_gym/openai_utils.py (0.4.0) admit them, and `SimpleAgent.run` raises on any error.
    """
    reply = await trial.verify_fresh(output.response, output.row)
    if not output.stock and _refused_by_type(reply):
        raise NotApplicable("NeMo Gym's own types refuse it; see verify-framework-types")
    if output.row and not is_success(reply.status):
        rollouts = trial.gym.recorded.get(output.row)
        plain = response([message(rollouts[0].last_text)]) if rollouts else DO_NOTHING.response
        if not is_success((await trial.verify_fresh(plain, output.row)).status):
            raise NotApplicable("its own answer is not scored either; see verify-scores-rows")
        trial.channel.exchanges[-2:] = []
    long = output.name.startswith((LONG_NUMBER, OPEN_BRACKETS))
    expect_success(reply, _TOO_LONG if long else _LIMITED if output.name == LONG_TEXT else _UNEXPECTED)
    try:
        expect_number(reply)
    except Violation:
        record = list(trial.channel.exchanges)
        plain = await trial.scored(await trial.open(), DO_NOTHING.response)
        trial.channel.exchanges[:] = record
        if is_number(plain.get("reward")):  # otherwise see verify-reward-finite
            raise


_UNEXPECTED = "The scorer assumes that there is a message, text, or arguments that parse."
_LIMITED = "The scorer, or what it hands the text to, fails beyond a length; such an answer is a wrong answer."
_TOO_LONG = (
    "The scorer parses the number or the JSON without catching errors: int() raises a ValueError above 4,300 digits, and "
    "json a RecursionError if it is nested too deeply. An answer that cannot be parsed is a wrong answer."
)


@check(
    "verify-long-rollout",
    "verify SHOULD score a long rollout with all its tokens",
    why="each turn brings the ids of all tokens before it, so long rollouts are megabytes; those that are refused are never learned from.",
    needs=[RESOURCES_SERVER, SCORE],
)
async def verify_long_rollout(trial: Trial, _: object) -> None:
    """Verifies twenty turns, each with the ids of all tokens before it: three megabytes.

    Not applicable if the same turns with few tokens are not scored either, if the server is too slow for so many, or if it
    scores whole groups, each of whose rollouts would be as long.

    Our inference. NeMo RL and verl read the ids from verify's echo, and NeMo Gym's own servers limit no body (0.4.0);
    but other frameworks do so by default: Express 100 KB, aiohttp, Fastify and nginx 1 MB, axum 2 MB, Django 2.5 MB.
    """
    short = response([*turns_with_tokens(NO_SUCH_TOOL, 1)])
    if not is_success((await trial.verify_fresh(short)).status):
        raise NotApplicable("the same turns with few tokens are not scored either; see verify-degenerate")
    if (members := trial.gym.endpoint.groups.size) > 1:
        raise NotApplicable(
            f"it scores {members} rollouts together, and as many times three megabytes take it too long"
        )
    trial.channel.exchanges.clear()
    try:
        reply = await trial.verify_fresh(response([*turns_with_tokens(NO_SUCH_TOOL, 900)]))
    except NotSent as too_large:
        raise NotApplicable(str(too_large)) from None
    except ServerFault as fault:
        if fault.fault is Fault.HANG:
            trial.gym.endpoint.forgive(fault)
            await _caught_up(trial, short)
            raise NotApplicable("three megabytes take it too long") from None
        raise
    expect_success(reply, "The framework, or a proxy before it, limits the size of a body: raise the limit.")


async def _caught_up(trial: Trial, scored: dict[str, Any]) -> None:
    """Wait until what was scored before is scored again: the server may be at work on what nobody waits for any more."""
    for _try in range(_CATCHING_UP):
        with suppress(ServerFault, NotSent), trial.gym.endpoint.forgiving():
            await trial.verify_fresh(scored)
            return


@check(
    "verify-malformed-calls",
    "verify MUST score malformed calls to every tool",
    why="the agent survives such calls and goes on to verify, where the whole rollout is lost with all its tokens.",
    needs=[RESOURCES_SERVER, TOOLS, SCORE],
    subjects=lambda trial: [row for row in trial.gym.rows if row.tools],
    beside=True,
)
async def verify_malformed_calls(trial: Trial, row: Row) -> None:
    """For each row, verifies calls to all its tools whose arguments are empty, a list, null, not JSON, and so on.

    If verify does not answer 200, each tool is tried alone to find the one at fault. A row that verify cannot score at
    all belongs to verify-scores-rows.

    Source: simple_agent/app.py (0.4.0) answers malformed arguments with an error for the policy, and continues.
    """
    for slip, arguments in SLIPS.items():
        names = [tool.name for tool in row.tools]
        if (together := await _refusal(trial, row, names, arguments)) is None:
            continue
        await trial.scored(await trial.open(row), DO_NOTHING.response)
        alone = [(name, reply) for name in names if (reply := await _refusal(trial, row, [name], arguments))]
        name, reply = next(iter(alone), ("all its tools", together))
        raise Violation(
            f"status 200 for a call of {name} whose arguments are {slip}",
            describe(reply),
            "verify parses the arguments, or reads a key from them, without guarding against errors.",
        )


async def _refusal(trial: Trial, row: Row, names: list[str], arguments: str) -> Reply | None:
    """The reply to such calls; None where they are scored, and then it leaves no trace."""
    calls = [function_call(name, arguments, f"call_{at}") for at, name in enumerate(names)]
    before = len(trial.channel.exchanges)
    reply = await trial.verify_fresh(response([*calls, message("Done.")]), row)
    if not is_success(reply.status):
        return reply
    for exchange in trial.channel.exchanges[before:]:
        trial.channel.forget(exchange)
    return None


@check(
    "verify-framework-types",
    "verify SHOULD accept hosted tools' items, lists as tool output, and unknown items",
    why="with a policy that uses hosted tools, every such rollout is lost with a 422.",
    needs=[RESOURCES_SERVER, SCORE],
    subjects=lambda trial: [output for output in each_degenerate_output(trial) if not output.stock],
    framework=True,
    beside=True,
)
async def verify_framework_types(trial: Trial, output: Degenerate) -> None:
    """Verifies the outputs that NeMo Gym's own types cannot read in some versions.

    Source: `NeMoGymResponseOutputItem` in nemo_gym/openai_utils.py: in 0.4.0 every stock server refuses them.
    """
    if _refused_by_type(reply := await trial.verify_fresh(output.response)):
        raise Violation(
            "status 200",
            describe(reply),
            "This comes from NeMo Gym's own types, not from this environment; newer versions accept more.",
        )


@check(
    "verify-raw-surrogate",
    "verify SHOULD score text that contains a lone surrogate",
    why="models that write byte by byte produce them, and the rollout is lost with a 500.",
    needs=[RESOURCES_SERVER, SCORE],
    framework=True,
)
async def verify_raw_surrogate(trial: Trial, _: object) -> None:
    r"""Verifies a message whose text contains the JSON escape "\ud800", which Python reads as one character.

    It does not count if a framework other than NeMo Gym fails on this text and accepts it with U+FFFD in place of the
    surrogate: then the framework's JSON cannot read or write it, and the environment's author has no say in that.

    Source: in 0.4.0 every stock server answers 500: `BaseVerifyResponse` in nemo_gym/base_resources_server.py echoes
    the response, which cannot be encoded as UTF-8.
    """
    reply = await trial.verify_fresh(RAW_SURROGATE.response)
    if not is_success(reply.status) and not trial.met_framework:
        replaced = await trial.verify_fresh(REPLACED_SURROGATE.response)
        if is_success(replaced.status):
            raise NotApplicable("the server's web framework cannot represent it; with U+FFFD in its place it is scored")
    expect_success(
        reply,
        "This comes from NeMo Gym's own echo, not from this environment: UTF-8 has no lone surrogates.",
    )


@check(
    "verify-without-session",
    "verify MUST NOT crash without a session",
    why="after a lost cookie or a restart, every verify arrives like this; a 5xx ends the whole collection.",
    needs=[RESOURCES_SERVER, SCORE],
    subjects=lambda _: ("no cookie, before any seed", "an unknown cookie"),
)
async def verify_without_session(trial: Trial, subject: str) -> None:
    """Verifies the first row without a cookie, and with a cookie that the server never set.

    A 4xx that says so is fine, but since it scores nothing, the check then counts as not applicable.

    Source: https://github.com/unslothai/notebooks/blob/main/nb/NeMo-Gym-Sudoku.ipynb calls `/verify` with no seed and
    no cookie.
    """
    unknown = Cookies((("unknown", "cookie"),)) if subject == "an unknown cookie" else NO_COOKIES
    reply = await trial.verify_bare(DO_NOTHING.response, unknown)
    expect_no_crash(reply, "verify looks up its session without checking that it exists.")
    if is_error(reply.status):
        raise NotApplicable(f"it refuses what has no session: status {reply.status}")


@check(
    "verify-malformed",
    "verify SHOULD refuse a malformed request without a 5xx",
    why="a 5xx is retried and hides what was wrong, while a 422 names the field.",
    needs=[RESOURCES_SERVER, SCORE],
)
async def verify_malformed(trial: Trial, _: object) -> None:
    """Verifies the first row with no response, with null, and with an empty object as the response.

    Our inference: FastAPI answers 422 before the handler runs.
    """
    bodies: tuple[dict[str, Any], ...] = ({}, {"response": None}, {"response": {}})
    for fields in bodies:
        session = await trial.open()
        reply = reply_of(await session.send(post(VERIFY, {**trial.gym.row.data, **fields})))
        expect_no_crash(reply, "The handler reads the raw body instead of a typed request model.")
