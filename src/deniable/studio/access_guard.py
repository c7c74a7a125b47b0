"""Who may talk to the studio: one browser, from its own pages, under its own address.

Any page in any browser tab, and any other program on this computer, can send requests to a local
port. A request is answered only if its Host is ours (no DNS rebinding), if it changes something its
Origin too (no forged requests), and if it has the cookie that the one-time link was traded for.
"""

import hmac
import threading
from collections.abc import Iterable, Mapping
from http.cookies import CookieError, SimpleCookie
from typing import TYPE_CHECKING
from urllib.parse import parse_qs

from deniable.randomness import SystemRng

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; frame-src 'self'; form-action 'self'; base-uri 'none'; "
    "frame-ancestors 'none'"
)
# A report is a page that the evaluation wrote, with its style inside. It is shown in a frame of
# ours; it loads nothing, and no script of it runs.
REPORT_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; img-src data:; form-action 'none'; "
    "base-uri 'none'; frame-ancestors 'self'; sandbox allow-same-origin"
)
_HEADERS = {
    "cache-control": "no-store",
    "content-security-policy": _POLICY,
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
    # Not no-referrer: browsers would then send "Origin: null" with our own forms.
    "referrer-policy": "same-origin",
    "x-content-type-options": "nosniff",
}
_SAFE_METHODS = ("GET", "HEAD")
ENTRY = "/enter"
_PUBLIC_PREFIX = "/static/"


def random_text() -> str:
    """Draw 256 bits from the operating system, as hexadecimal digits."""
    return SystemRng().words(4).tobytes().hex()


class Access:
    """The addresses of a studio, its one-time link and the cookies it has given out.

    Args:
        host: The address it is bound to.
        port: Its port.
    """

    def __init__(self, host: str, port: int) -> None:
        names = {host, "127.0.0.1", "localhost"} if host in ("127.0.0.1", "localhost") else {host}
        self.hosts = frozenset(
            f"[{name}]:{port}" if ":" in name else f"{name}:{port}" for name in names
        )
        self.cookie = f"deniable_studio_{port}"
        shown = f"[{host}]" if ":" in host else host
        self._address = f"http://{shown}:{port}"
        self._lock = threading.Lock()
        self._token: str | None = None
        self._sessions: set[str] = set()

    def new_link(self) -> str:
        """Make a link that opens the studio in one browser, once. An earlier one ends."""
        with self._lock:
            self._token = random_text()
            return f"{self._address}{ENTRY}?token={self._token}"

    def trade(self, token: str) -> str | None:
        """Trade the token of the link for the value of a cookie; None if it is wrong or used."""
        with self._lock:
            if self._token is None or not hmac.compare_digest(self._token, token):
                return None
            self._token = None
            session = random_text()
            self._sessions.add(session)
            return session

    def knows(self, cookies: str) -> bool:
        """Whether a Cookie header has one of our cookies."""
        try:
            morsel = SimpleCookie(cookies).get(self.cookie)
        except CookieError:
            return False
        given = "" if morsel is None else morsel.value
        return any(hmac.compare_digest(session, given) for session in self._sessions)

    def refusal(self, method: str, path: str, headers: Mapping[str, str]) -> tuple[int, str] | None:
        """Why a request is refused: a status and the name of a page; None if it may pass."""
        if headers.get("host", "") not in self.hosts:
            return 421, "host"
        site = headers.get("sec-fetch-site", "same-origin")
        if method not in _SAFE_METHODS:
            origin = headers.get("origin", "")
            own = origin.removeprefix("http://") in self.hosts and origin.startswith("http://")
            if not own or site != "same-origin":
                return 403, "origin"
        elif site not in ("same-origin", "none") and headers.get("sec-fetch-mode") != "navigate":
            return 403, "origin"
        is_open = path.startswith(_PUBLIC_PREFIX) or path == ENTRY
        if not is_open and not self.knows(headers.get("cookie", "")):
            return 403, "cookie"
        return None


class AccessGuard:
    """Middleware: refuse what is not from our own browser; add the headers of every response.

    Args:
        app: The application.
        access: Addresses, link and cookies.
        refusals: The application that answers refused requests, by the path /name.
    """

    def __init__(self, app: "ASGIApp", access: Access, refusals: "ASGIApp") -> None:
        self._app = app
        self._access = access
        self._refusals = refusals

    async def __call__(self, scope: "Scope", receive: "Receive", send: "Send") -> None:
        """Handle one request."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            return

        async def send_guarded(message: "Message") -> None:
            if message["type"] == "http.response.start":
                message = {**message, "headers": _with_headers(message.get("headers", ()))}
            await send(message)

        headers = {
            name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]
        }
        hosts = [value for name, value in scope["headers"] if name == b"host"]
        refused = self._access.refusal(scope["method"], scope["path"], headers)
        if len(hosts) != 1:
            refused = 421, "host"
        if refused is None:
            await self._app(scope, receive, send_guarded)
            return
        scope = {**scope, "method": "GET", "path": f"/{refused[1]}", "studio_status": refused[0]}
        await self._refusals(scope, receive, send_guarded)


def _with_headers(given: Iterable[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    """Add our headers, except those that a response sets itself."""
    own = {name.lower() for name, _ in given}
    added = [
        (name.encode(), value.encode())
        for name, value in _HEADERS.items()
        if name.encode() not in own
    ]
    return [*given, *added]


def token_of(query: str) -> str:
    """The token in the query of a link; "" if there is none."""
    return parse_qs(query, max_num_fields=4).get("token", [""])[0]
