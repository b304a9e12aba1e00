"""A help desk on Django: signed cookies, ticket numbers that count up over all sessions, refusals 400 with a word for each field."""

import itertools
import json
import uuid
from wsgiref.simple_server import WSGIRequestHandler, make_server

import django
from django.conf import settings
from django.core.wsgi import get_wsgi_application
from django.http import HttpResponse, JsonResponse
from django.urls import path

from tests.zoo.author import main, planted, row, tool

settings.configure(
    SECRET_KEY="django-insecure-zoo",
    ALLOWED_HOSTS=["*"],
    ROOT_URLCONF=__name__,
    MIDDLEWARE=[f"{__name__}.sessions", "django.middleware.gzip.GZipMiddleware"],
    DATA_UPLOAD_MAX_MEMORY_SIZE=2**26,
    APPEND_SLASH=False,
    LOGGING_CONFIG=None,
)
django.setup()

TEXT = {"type": "string", "minLength": 1, "maxLength": 200}
PRIORITY = {"type": "string", "enum": ["low", "normal", "urgent"]}
NUMBER = {"type": "integer", "minimum": 1}
TOOLS = [
    tool("create_ticket", "Open a ticket; says its number.", {"title": TEXT, "priority": PRIORITY}),
    tool("get_ticket", "Read a ticket.", {"number": NUMBER}),
    tool(
        "list_tickets",
        "All tickets, oldest first, a page of two at a time.",
        {},
        {"page": {"type": "integer", "minimum": 1, "maximum": 50}},
    ),
    tool("close_ticket", "Close a ticket.", {"number": NUMBER, "reason": TEXT}),
]
PLANS = {
    0: [
        ("list_tickets", {}),
        lambda seen: ("close_ticket", {"number": seen[0]["tickets"][0]["number"], "reason": "fixed"}),
    ],
    1: [
        ("create_ticket", {"title": "Printer on fire", "priority": "urgent"}),
        lambda seen: ("get_ticket", {"number": seen[0]["number"]}),
        ("list_tickets", {"page": 1}),
    ],
}

NUMBERS = itertools.count(1)
TICKETS = {}


def rows():
    yield row("Close the oldest ticket, it is fixed.", TOOLS, tickets=["No ink", "No paper"], open_at_end=["No paper"])
    yield row("The printer is on fire, urgently.", TOOLS, tickets=["No ink"], open_at_end=["No ink", "Printer on fire"])
    yield row("Open one for the door and close it.", TOOLS, tickets=["A", "B", "C"], open_at_end=["A", "B", "C"])


def sessions(get_response):
    def middleware(request):
        try:
            request.sid = request.get_signed_cookie("helpdesk")
        except Exception:
            request.sid = uuid.uuid4().hex
        reply = get_response(request)
        reply.set_signed_cookie("helpdesk", request.sid, httponly=True)
        return reply

    return middleware


class Refused(Exception):
    pass


def mine(request):
    if planted("one_queue"):
        return list(TICKETS.values())
    return [ticket for ticket in TICKETS.values() if ticket["sid"] == request.sid]


def found(request, number):
    ticket = TICKETS.get(number)
    if ticket is None or (ticket["sid"] != request.sid and not planted("any_number")):
        raise Refused({"number": ["no ticket has this number"]})
    return ticket


def shown(ticket):
    return {key: value for key, value in ticket.items() if key != "sid"}


def a_tool(**fields):
    def wrap(function):
        def view(request):
            try:
                data = json.loads(request.body)
            except ValueError:
                return JsonResponse({"errors": {"body": ["no JSON"]}}, status=400)
            if planted("crash_on_list"):
                data = dict(data.items())
            if not isinstance(data, dict):
                return JsonResponse({"errors": {"body": ["no object"]}}, status=400)
            errors = {name: ["unknown field"] for name in data if name not in fields}
            for name, (kind, needed) in fields.items():
                if needed and name not in data:
                    errors[name] = ["This field is required."]
                elif name in data and not kind(data[name]):
                    errors[name] = ["Enter a valid value."]
            if errors:
                return JsonResponse({"errors": errors}, status=400)
            try:
                return JsonResponse(function(request, **data))
            except Refused as error:
                return JsonResponse({"errors": error.args[0]}, status=400)

        return view

    return wrap


def a_text(x):
    return isinstance(x, str) and 1 <= len(x) <= 200


def a_number(x):
    return type(x) is int and x >= 1


def a_page(x):
    return a_number(x) and x <= 50


def a_priority(x):
    return x in ("low", "normal", "urgent") if not planted("enum_member_refused") else x in ("low", "normal", "high")


def add(sid, title, priority):
    number = next(NUMBERS)
    TICKETS[number] = {"number": number, "title": title, "priority": priority, "state": "open", "sid": sid}
    return TICKETS[number]


@a_tool(title=(a_text, True), priority=(a_priority, True))
def create_ticket(request, title, priority):
    return shown(add(request.sid, title, priority))


@a_tool(number=(a_number, True))
def get_ticket(request, number):
    return shown(found(request, number))


@a_tool(page=(a_page, False))
def list_tickets(request, page=1):
    tickets = mine(request)
    return {"tickets": [shown(t) for t in tickets[page * 2 - 2 : page * 2]], "pages": (len(tickets) + 1) // 2}


@a_tool(number=(a_number, True), reason=(a_text, True))
def close_ticket(request, number, reason):
    ticket = found(request, number)
    if ticket["state"] == "closed":
        raise Refused({"number": ["is closed already"]})
    ticket.update(state="closed", reason=reason)
    return shown(ticket)


def seed_session(request):
    try:
        titles = json.loads(request.body).get("tickets", [])
        assert all(isinstance(title, str) for title in titles)
    except (ValueError, AttributeError, AssertionError, TypeError):
        return JsonResponse({"errors": {"body": ["no row"]}}, status=400)
    for number in [number for number, ticket in TICKETS.items() if ticket["sid"] == request.sid]:
        del TICKETS[number]
    for title in [] if planted("seed_ignores_row") else titles:
        add(request.sid, title, "normal")
    return JsonResponse({"seeded": True})


def verify(request):
    try:
        data = json.loads(request.body)
        data["response"]["output"]
    except (ValueError, TypeError, KeyError):
        return JsonResponse({"errors": {"response": ["This field is required."]}}, status=400)
    left = [ticket["title"] for ticket in mine(request) if ticket["state"] == "open"]
    data["reward"] = (
        1.0
        if left == data.get("open_at_end")
        and any(i.get("type") == "function_call" for i in data["response"]["output"] if isinstance(i, dict))
        else 0.0
    )
    if planted("reward_missing_at_zero") and not data["reward"]:
        del data["reward"]
    return JsonResponse(data)


urlpatterns = [
    path("", lambda request: HttpResponse("help desk")),
    path("seed_session", seed_session),
    path("verify", verify),
]
urlpatterns += [path(each["name"], globals()[each["name"]]) for each in TOOLS]


class Quiet(WSGIRequestHandler):
    def log_message(self, *args):
        pass


def serve(port):
    make_server("127.0.0.1", port, get_wsgi_application(), handler_class=Quiet).serve_forever()


if __name__ == "__main__":
    main(rows, serve)
