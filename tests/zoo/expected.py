"""What is expected of each server of the zoo: none of its own findings, and each of its faults told."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType


@dataclass(frozen=True)
class Planted:
    """A fault: the level at which it is told, the checks of which one tells it (as in fnmatch), and words of its cause."""

    name: str
    level: str
    checks: tuple[str, ...]
    words: str

    @property
    def selected(self) -> str:
        """Those checks as `-k` selects them, which takes a part of a name; empty for all."""
        return "" if "*" in self.checks else " or ".join(check.rstrip("*") for check in self.checks)


def _must(name: str, checks: str, words: str) -> Planted:
    return Planted(name, "MUST", tuple(checks.split()), words)


def _should(name: str, checks: str, words: str) -> Planted:
    return Planted(name, "SHOULD", tuple(checks.split()), words)


_APART = "isolation-*"
_SHARED = "session"
_SCHEMA = "drift-argument-refused calls-valid"
_NUMBER = "verify-reward-finite"
_CRASH = "tool-* calls-*"

#: The first fault of each server is judged unless all are asked for; the slowest server comes first, lest the others wait for it.
ZOO: Mapping[str, tuple[Planted, ...]] = MappingProxyType(
    {
        "smarthome_starlette": (
            _must("room_gone", _SCHEMA, "bath"),
            _must("one_house", _APART, _SHARED),
            _must("current_house", _APART, _SHARED),
            _must("smaller_range", _SCHEMA, "degrees"),
            _must("tool_forgotten", "tool-routed", "get_room"),
            _must("cookie_when_new_only", "cookie-*", "cookie"),
            _must("reward_text", _NUMBER, "number"),
        ),
        "bank_flask": (
            _must("one_book", _APART, _SHARED),
            _must("current_session", _APART, _SHARED),
            _must("cookie_lost_on_error", "cookie-*", "cookie"),
            _must("enum_member_refused", _SCHEMA, "CHF"),
            _must("crash_on_malformed", _CRASH, "500"),
            _must("reward_is_text", _NUMBER, "number"),
            _must("verify_consumes", "repeat-verify", "verify"),
        ),
        "warehouse_aiohttp": (
            _must("renamed_argument", _SCHEMA, "count"),
            _must("default_argument", _APART, _SHARED),
            _must("current_session", _APART, _SHARED),
            _must("keyed_by_warehouse", _APART, _SHARED),
            _must("only_twenty", "isolation-crowded", "session"),
            _must("nan_for_untouched", f"{_NUMBER} verify-scores-rows", "number|NaN"),
        ),
        "calendar_litestar": (
            _must("enum_member_refused", _SCHEMA, "lunch"),
            _must("required_not_in_rows", _SCHEMA, "owner"),
            _must("type_changed", _SCHEMA, "day"),
            _must("crash_on_no_message", "verify-*", "500"),
            _must("tool_not_routed", "tool-routed", "404"),
        ),
        "tickets_django": (
            _must("crash_on_list", _CRASH, "500"),
            _must("any_number", _APART, _SHARED),
            _must("one_queue", _APART, _SHARED),
            _must("enum_member_refused", _SCHEMA, "urgent"),
            _should("seed_ignores_row", "seed-* repeat-recorded", "row"),
            _must("reward_missing_at_zero", _NUMBER, "reward"),
        ),
        "knights_tornado": (
            _must("renamed_argument", _SCHEMA, "to"),
            _must("cookie_at_seed_only", "cookie-*", "cookie"),
            _must("first_row_for_all", _APART, _SHARED),
            _must("crash_off_the_board", _CRASH, "500"),
            _should("verify_plays_on", "repeat-verify*", "verify"),
            _must("crash_reasoning_only", "verify-degenerate", "500"),
            _must("reward_infinite", f"{_NUMBER} verify-scores-rows", "number|JSON"),
        ),
        "files_http_server": (
            _must("wears_out", "*", "503"),
            _must("default_argument", _APART, _SHARED),
            _must("one_drive", _APART, _SHARED),
            _must("append_is_text", _SCHEMA, "append"),
            _must("crash_on_missing_file", _CRASH, "500"),
            _should("reward_by_claim", "reward-claim verify-floor", "claim|words"),
        ),
        "orders_workers": (
            _must("state_per_process", "isolation-* cookie-* seed-* repeat-*", "process|worker"),
            _must("key_per_process", "isolation-* cookie-* seed-*", "process|worker|key|sign"),
            _must("smaller_range", _SCHEMA, "amount"),
            _must("no_session_column", _APART, _SHARED),
            _must("reward_null", _NUMBER, "number"),
            _should("filter_ignored", "repeat-recorded", "product"),
        ),
        "library_sanic": (
            _must("foreign_cursor", _APART, _SHARED),
            _must("cache_by_word", _APART, _SHARED),
            _should("shelf_of_first_row", "seed-* repeat-recorded", "row"),
            _must("enum_member_refused", _SCHEMA, "year"),
            _must("crash_on_cursor", _CRASH, "500"),
            _should("pays_for_nothing", "verify-floor", "empty output"),
            _must("verify_gives_back", "repeat-verify", "verify"),
        ),
        "flights_quart": (
            _must("city_gone", _SCHEMA, "ATH"),
            _must("last_client", _APART, _SHARED),
            _must("bookings_of_all", _APART, _SHARED),
            _must("flights_of_all", _APART, _SHARED),
            _must("crash_on_missing", _CRASH, "500"),
            _must("reward_in_words", _NUMBER, "number"),
        ),
        "sheet_bottle": (
            _must("column_refused", _SCHEMA, "E"),
            _must("keyed_by_row", _APART, _SHARED),
            _must("value_is_a_number", _SCHEMA, "value"),
            _must("crash_on_types", _CRASH, "500"),
            _should("verify_clears", "repeat-verify*", "verify"),
            _must("crash_on_refusal", "verify-degenerate", "refusal"),
        ),
        "hotline_falcon": (
            _should("pays_for_nothing", "verify-floor", "empty output"),
            _must("one_list", _APART, _SHARED),
            _must("keeps_fifteen", "isolation-crowded", "session"),
            _must("required_not_in_rows", _SCHEMA, "reason"),
            _must("enum_member_refused", _SCHEMA, "insulin"),
            _must("crash_on_no_text", "verify-degenerate", "500"),
            _must("reward_is_list", _NUMBER, "number"),
        ),
        "retail_fastapi": (
            _must("seed_merges", _APART, _SHARED),
            _must("shared_fund", _APART, _SHARED),
            _must("enum_member_refused", _SCHEMA, "voucher"),
            _must("renamed_argument", _SCHEMA, "city"),
            _should("argument_ignored", "repeat-recorded", "change_address"),
            _must("crash_on_arguments", "verify-malformed-calls verify-degenerate", "500"),
        ),
    }
)

#: What is true of a server and no fault of its author's: a reward with noise is not the same twice.
ACCEPTED: Mapping[str, frozenset[str]] = MappingProxyType({"flights_quart": frozenset({"repeat-deterministic"})})
