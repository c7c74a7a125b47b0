"""The web application: routes, pages, and replies to errors."""

import errno
import traceback
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp

from deniable.errors import BudgetError, ConfigError, InputError, OutputError
from deniable.studio import (
    history_screen,
    more_records,
    plan_screen,
    result_screen,
    run_screen,
    schema_screen,
    table_screen,
)
from deniable.studio.access_guard import ENTRY, AccessGuard, token_of
from deniable.studio.root_folder import PathError
from deniable.studio.schema_file import StalePageError
from deniable.studio.spent_budget import cost_text
from deniable.studio.stage_words import findings
from deniable.studio.workspace import Call, Page, Redirect, Reply, Workspace, address

# Largest form, in bytes, and most fields: a schema of a thousand columns fits.
_MAX_FORM = 2**23
_MAX_FIELDS = 5000

Screen = Callable[[Call], Reply]
GET: dict[str, Screen] = {
    "/": table_screen.show_folder,
    "/table": table_screen.show_table,
    "/table/rows": table_screen.show_row_count,
    "/schema": schema_screen.show_schema,
    "/plan": plan_screen.show_plan,
    "/run": run_screen.list_runs,
    "/run/{id}": run_screen.show_run,
    "/result": result_screen.show_result,
    "/download": result_screen.download,
    "/view/{path:path}": result_screen.show_report,
    "/history": history_screen.show_history,
}
POST: dict[str, Screen] = {
    "/another": lambda call: Page(
        "another_link.html" if call.is_partial else "another.html",
        {"link": call.space.access.new_link("page")},
    ),
    "/draft": table_screen.start_draft,
    "/draft/command": table_screen.show_draft_command,
    "/schema/save": schema_screen.save,
    "/schema/edit": schema_screen.edit,
    "/schema/fields": schema_screen.show_fields,
    "/schema/answer": schema_screen.answer,
    "/schema/confirm": schema_screen.confirm,
    "/schema/rows": schema_screen.confirm_rows,
    "/schema/constraint": schema_screen.change_constraint,
    "/schema/text": schema_screen.save_text,
    "/start": plan_screen.start_run,
    "/run/{id}/cancel": run_screen.cancel_run,
    "/check": result_screen.start_check,
    "/more": more_records.start_more,
    "/more/command": more_records.show_request,
}
_REFUSALS = {
    "host": "This address is not the studio's. Open the link that the terminal shows.",
    "origin": "This request came from another page, so it was refused. Nothing was changed.",
    "cookie": "This browser has not been let in, or the studio was restarted since. Open the link "
    "that the terminal shows.",
    "token": "This link was used already, or is wrong: each opens the studio once. Open the newest "
    "one that the terminal shows.",
}


@lru_cache(maxsize=1)
def make_templates() -> Environment:
    """The templates, compiled once. Every text is escaped."""
    found = Environment(
        loader=PackageLoader("deniable.studio"),
        autoescape=select_autoescape(default=True, default_for_string=True),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    found.globals |= {"address": address}
    found.filters |= {"cost": cost_text, "findings": findings}
    return found


def make_app(space: Workspace, announce: Callable[[str], None], *, watch: bool = True) -> ASGIApp:
    """Make the application, with its guard.

    Args:
        space: The workspace.
        announce: Prints a line on the terminal: a new link.
        watch: Whether runs are followed; tests may do that themselves.
    """
    templates = make_templates()

    @asynccontextmanager
    async def lifespan(_app: Starlette) -> AsyncIterator[None]:
        if watch:
            space.control.start()
        yield
        if watch:
            space.control.stop()

    async def enter(request: Request) -> Response:
        # A HEAD request shows nothing, so it must not use the link up.
        is_read = request.method == "GET"
        session = space.access.trade(token_of(request.url.query)) if is_read else None
        if session is None:
            if is_read and (link := space.access.next_link()):
                announce(link)
            return _page(templates, Page("refused.html", {"reason": _REFUSALS["token"]}, 403))
        reply = _page(templates, Page("entered.html", {}))
        reply.set_cookie(space.access.cookie, session, httponly=True, samesite="strict", path="/")
        return reply

    def routes() -> list[Route]:
        served = [
            Route(path, _endpoint(space, templates, screen), methods=[method])
            for method, screens in (("GET", GET), ("POST", POST))
            for path, screen in screens.items()
        ]
        return [Route(ENTRY, enter, methods=["GET"]), *served]

    static = Mount("/static", StaticFiles(directory=Path(__file__).with_name("static")))
    app = Starlette(
        routes=[*routes(), static],
        lifespan=lifespan,
        exception_handlers={404: _not_found(templates), 405: _not_found(templates)},
    )
    return AccessGuard(app, space.access, _refusal_app(templates))


def _endpoint(space: Workspace, templates: Environment, screen: Screen) -> Any:
    async def answer(request: Request) -> Response:
        try:
            form = await _read_form(request) if request.method == "POST" else {}
            call = Call(
                space=space,
                query=_fields(request.url.query),
                form=form,
                parts={name: str(value) for name, value in request.path_params.items()},
                is_partial="hx-request" in request.headers,
                trigger=request.headers.get("hx-trigger-name", ""),
            )
            return await run_in_threadpool(_answer, templates, screen, call)
        except ClientDisconnect:
            return Response(status_code=400)
        except Exception as fault:
            # A traceback may quote the table: none is shown, and none is logged.
            return _page(templates, _whole_page(request, describe_fault(fault)))

    return answer


def _whole_page(request: Request, page: Page) -> Page:
    """Let a page replace all of the other, also where only a part of it was asked for."""
    headers = {"HX-Retarget": "body", "HX-Reswap": "innerHTML"}
    return replace(page, headers=headers) if "hx-request" in request.headers else page


def _answer(templates: Environment, screen: Screen, call: Call) -> Response:
    reply = screen(call)
    if isinstance(reply, Page):
        return _page(templates, reply)
    if isinstance(reply, Redirect):
        return RedirectResponse(reply.address, status_code=303)
    headers = dict(reply.headers)
    return StreamingResponse(reply.blocks, media_type=reply.kind, headers=headers)


def _page(templates: Environment, page: Page) -> HTMLResponse:
    content = {"table": "", "schema": "", "command": "", **page.content}
    text = templates.get_template(page.template).render(content)
    return HTMLResponse(text, status_code=page.status, headers=dict(page.headers))


async def _read_form(request: Request) -> dict[str, str]:
    """Read a form, at most 8 MiB; nothing is kept on disk."""
    body = bytearray()
    async for block in request.stream():
        body += block
        if len(body) > _MAX_FORM:
            raise OutputError("this form is too large; edit the file with an editor instead")
    return _fields(body.decode("latin-1"))


def _fields(query: str) -> dict[str, str]:
    """Parse fields; the values of a repeated one are joined by line breaks."""
    found: dict[str, str] = {}
    try:
        pairs = parse_qsl(query, keep_blank_values=True, max_num_fields=_MAX_FIELDS)
    except ValueError:
        raise ConfigError("this form has too many fields; edit the file with an editor") from None
    for name, value in pairs:
        found[name] = f"{found[name]}\n{value}" if name in found else value
    return found


# Errors that have a page of their own: title and status; the message is the error's.
_TITLES: tuple[tuple[type[Exception], str, int], ...] = (
    (PathError, "This path is not open to the studio", 403),
    (StalePageError, "This page is out of date", 409),
    (BudgetError, "This guarantee cannot be met", 422),
    (InputError, "This does not work yet", 422),
)
_SYSTEM_FAULTS: dict[int, tuple[str, str, int]] = {
    errno.ENOSPC: (
        "The disk is full",
        "Nothing was lost: free some space, then try again.",
        507,
    ),
    errno.ENOENT: (
        "This file is not there",
        "It was moved or deleted, or never was there. Look for it on the first screen.",
        404,
    ),
    errno.ENAMETOOLONG: (
        "This name is too long",
        "A file name may have 255 bytes. Nothing was written: rename the file, or choose a "
        "shorter name.",
        422,
    ),
    errno.EACCES: (
        "Not permitted",
        "You may not read or write there. Change its permissions, or use another folder.",
        403,
    ),
}
_SYSTEM_FAULTS[errno.EDQUOT] = _SYSTEM_FAULTS[errno.ENOSPC]
_SYSTEM_FAULTS[errno.EROFS] = _SYSTEM_FAULTS[errno.EPERM] = _SYSTEM_FAULTS[errno.EACCES]


def describe_fault(fault: Exception) -> Page:
    """The page of an error: what happened, that nothing is lost, and what to do."""
    if isinstance(fault, OSError) and fault.errno in _SYSTEM_FAULTS:
        return _fault_page(*_SYSTEM_FAULTS[fault.errno])
    for kind, title, status in _TITLES:
        if isinstance(fault, kind):
            return _fault_page(title, _sentence(str(fault)), status)
    frame = traceback.extract_tb(fault.__traceback__)[-1]
    place = f"{type(fault).__name__} in {Path(frame.filename).name}:{frame.lineno}"
    words = (
        f"This is a bug of the studio ({place}). Its message is not shown, as it may quote the "
        "table. No run and no file was harmed. Please report it."
    )
    return _fault_page("Something went wrong", words, 500)


def _fault_page(title: str, words: str, status: int) -> Page:
    return Page("fault.html", {"title": title, "words": words}, status)


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}" + ("" if text.endswith((".", "?", "!")) else ".")


def _not_found(templates: Environment) -> Any:
    async def answer(_request: Request, _fault: Exception) -> Response:
        words = "There is no such page here. Use the links at the top."
        return _page(templates, _fault_page("There is no such page", words, 404))

    return answer


def _refusal_app(templates: Environment) -> ASGIApp:
    """The application that answers refused requests."""

    async def refuse(request: Request) -> Response:
        reason = _REFUSALS[request.path_params["name"]]
        status = request.scope.get("studio_status", 403)
        page = Page("refused.html", {"reason": reason}, status)
        return _page(templates, _whole_page(request, page))

    return Starlette(routes=[Route("/{name}", refuse, methods=["GET"])])
