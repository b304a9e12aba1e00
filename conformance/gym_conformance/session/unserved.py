"""Whether a tool is served at all, judged by comparison with the replies for a tool that does not exist.

The status alone says little: a tool may itself answer 404, for an account that does not exist.
"""

from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from typing import Any, Final

from gym_conformance.contract.dataset_rows import Call
from gym_conformance.contract.endpoints import tool_path
from gym_conformance.session.contracts import Session
from gym_conformance.session.exchange import Exchange, Request, reply_of
from gym_conformance.session.likeness import Answer, alike

#: Tools that no environment has: differences between the replies for these two mean nothing.
NO_SUCH_TOOL: Final = "no_such_tool_conformance"
_NOR_THIS: Final = "nor_this_one_conformance"


async def is_served(session: Session, tool: str, tried: Iterable[Any]) -> bool:
    """Whether some request gets a different reply than the same request for a tool that does not exist.

    It tries calls with each of these arguments, a body that is no call, and a GET, which a router refuses with a
    different status if it knows the path.
    """
    for arguments in tried:
        if not await _alike(partial(_call, session, arguments), tool):
            return True
    if not await _alike(lambda name: session.call_raw(name, b"[]"), tool):
        return True
    return not await _alike(lambda name: session.send(Request("GET", tool_path(name))), tool)


async def _call(session: Session, arguments: Any, tool: str) -> Exchange:
    return await session.call(Call(tool, arguments))


async def _alike(ask: Callable[[str], Awaitable[Exchange]], tool: str) -> bool:
    names = (tool, NO_SUCH_TOOL, _NOR_THIS)
    own, stranger, another = [Answer(reply_of(await ask(name)), (name,)) for name in names]
    return alike(own, stranger, another)
