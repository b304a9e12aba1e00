"""Whether a name says that what it names is an id: `id`, `order_id`, `orderId`, `orderid`, but not `paid` or `grid`. Pure."""

import re
from typing import Final

#: The last word of a name: `Id` of `orderId`, `ID` of `orderID`, all of `orderid`.
_LAST: Final = re.compile(r"[A-Z]?[a-z]+$|[A-Z]+$")

#: Words that end like `orderid`.
_OTHERS: Final = re.compile(
    "acid|aid|android|arid|avoid|bid|braid|candid|covid|fluid|forbid|grid|humid|hybrid|invalid|kid|laid|lid|liquid|mid|outbid"
    "|overpaid|paid|plaid|prepaid|pyramid|raid|rapid|rebid|repaid|rid|rigid|said|solid|squid|unpaid|valid|vivid|void"
)


def ends_in_id(name: str) -> bool:
    """Whether the last word of a name is `id`, or a word with `id` after it."""
    last = _LAST.search(name)
    word = last[0].lower() if last else ""
    return word.endswith("id") and not _OTHERS.fullmatch(word)
