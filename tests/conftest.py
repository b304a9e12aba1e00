"""What all tests share."""

from functools import cache

import httpx
from httpx._transports import default

# Most tests make a client, which reads all the authorities of the web anew: 30 ms of work for a server without TLS.
vars(default)["create_ssl_context"] = cache(httpx.create_ssl_context)
