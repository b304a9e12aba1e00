"""HTTP as plain values: a request comes in, a reply goes out; sockets are `gym_mocks.serving`'s matter."""

from gym_mocks.wire.app import App, Dropped, Handler, live
from gym_mocks.wire.bodies import HttpRefusal, json_body
from gym_mocks.wire.messages import HttpReply, HttpRequest

__all__ = ["App", "Dropped", "Handler", "HttpRefusal", "HttpReply", "HttpRequest", "json_body", "live"]
