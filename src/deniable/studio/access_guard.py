"""Access control of the studio: one browser, from its own pages, under its own address.

Any page in any browser tab, and any other program on this computer, can send requests to a local
port. A request is answered only if its Host is ours (no DNS rebinding), if it changes something its
Origin too (no forged requests), and if it has the cookie that the one-time link was traded for.

Browsers send a cookie of 127.0.0.1 to every port there, so also to a server of another user. So a
local studio has a random name of its own below ``localhost``.
"""

import hmac
import ipaddress
import socket
import threading
from collections.abc import Iterable, Mapping
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
# Addresses that mean every address of this computer.
_EVERYWHERE = ("0.0.0.0", "::")  # noqa: S104 - recognized here, not bound to
_LOOPBACK = ("127.0.0.1", "localhost")
_HTTP_PORT = 80


def random_text() -> str:
    """Draw 256 bits from the operating system, as hexadecimal digits."""
    return SystemRng().words(4).tobytes().hex()


def local_name() -> str:
    """Draw a host name that browsers resolve to this computer: its cookies go nowhere else."""
    return f"studio-{random_text()[:32]}.localhost"


class Access:
    """The addresses of a studio, its one-time links and the cookies it has given out.

    Args:
        host: The address it is bound to.
        port: Its port.
        name: The only name it is served under; "": the address, and what else means the same.
    """

    def __init__(self, host: str, port: int, name: str = "") -> None:
        self._port = port
        self._is_everywhere = host in _EVERYWHERE
        shown = name or (socket.gethostname().lower() if self._is_everywhere else host)
        names = {shown}
        if not name and (self._is_everywhere or host in _LOOPBACK):
            names |= set(_LOOPBACK)
        self.hosts = frozenset().union(*(self._written(each) for each in names))
        self.cookie = f"deniable_studio_{port}"
        self._address = f"http://{f'[{shown}]' if ':' in shown else shown}:{port}"
        self._lock = threading.Lock()
        # The unused tokens: that of the terminal's link, and that of a link on a page.
        self._tokens: dict[str, str] = {}
        self._sessions: set[str] = set()

    def _written(self, name: str) -> frozenset[str]:
        """A name or an address as a Host header writes it: browsers leave out port 80."""
        bare = (f"[{name}]" if ":" in name else name).lower()
        return frozenset({f"{bare}:{self._port}"} | ({bare} if self._port == _HTTP_PORT else set()))

    def new_link(self, place: str = "terminal") -> str:
        """Make a link that opens the studio in one browser, once. An earlier one there ends."""
        with self._lock:
            self._tokens[place] = random_text()
            return f"{self._address}{ENTRY}?token={self._tokens[place]}"

    def next_link(self) -> str | None:
        """A new link for the terminal if its last one was used; None if that still works."""
        with self._lock:
            waits = "terminal" in self._tokens
        return None if waits else self.new_link()

    def trade(self, token: str) -> str | None:
        """Trade the token of a link for the value of a cookie; None if it is wrong or used."""
        with self._lock:
            used = [place for place, known in self._tokens.items() if _same(known, token)]
            if not used:
                return None
            del self._tokens[used[0]]
            session = random_text()
            self._sessions.add(session)
            return session

    def knows(self, cookies: str) -> bool:
        """Whether a Cookie header has one of our cookies. Others in it may be anything."""
        pairs = (each.strip().partition("=") for each in cookies.split(";"))
        given = [value for name, _, value in pairs if name == self.cookie]
        return any(_same(session, value) for session in self._sessions for value in given)

    def serves(self, host: str, reached: str) -> bool:
        """Whether a Host header is ours.

        Args:
            host: The header.
            reached: The address of this computer at which the request arrived. It counts where
                the studio listens on all addresses; a name that leads there does not.
        """
        address = _plain_address(reached) if self._is_everywhere else ""
        own = self._written(address) if address else frozenset()
        return host.lower() in self.hosts | own

    def refusal(
        self, method: str, path: str, headers: Mapping[str, str], reached: str = ""
    ) -> tuple[int, str] | None:
        """Why a request is refused: a status and the name of a page; None if it may pass."""
        host = headers.get("host", "")
        if not self.serves(host, reached):
            return 421, "host"
        site = headers.get("sec-fetch-site", "same-origin")
        if method not in _SAFE_METHODS:
            if headers.get("origin", "") != f"http://{host}" or site != "same-origin":
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
        reached = str((scope.get("server") or ("",))[0])
        refused = self._access.refusal(scope["method"], scope["path"], headers, reached)
        if len(hosts) != 1:
            refused = 421, "host"
        if refused is None:
            await self._app(scope, receive, send_guarded)
            return
        scope = {**scope, "method": "GET", "path": f"/{refused[1]}", "studio_status": refused[0]}
        await self._refusals(scope, receive, send_guarded)


def _same(known: str, given: str) -> bool:
    """Compare secrets in constant time; as bytes, since a given one may be any text."""
    return hmac.compare_digest(known.encode(), given.encode(errors="replace"))


def _plain_address(reached: str) -> str:
    """An address as a browser writes it: an IPv4 one also where it arrived by IPv6."""
    try:
        found = ipaddress.ip_address(reached.partition("%")[0])
    except ValueError:
        return ""
    mapped = getattr(found, "ipv4_mapped", None)
    return str(mapped or found)


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
    try:
        return parse_qs(query, max_num_fields=4).get("token", [""])[0]
    except ValueError:  # too many fields
        return ""
