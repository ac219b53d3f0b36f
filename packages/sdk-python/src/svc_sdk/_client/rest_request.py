"""Builds the request of an operation."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlencode

from .._routes import ROUTES
from ..errors import SvcError
from .content import Content, whole_of

_VERSION = "/v1"
_ORGANIZATION = "/orgs/{slug}"
#: What encodeURIComponent leaves as it is.
_PLAIN = "!'()*~"


@dataclass(frozen=True)
class PreparedRequest:
    method: str
    #: Below the address of the server.
    path: str
    headers: dict[str, str]
    body: bytes | None
    #: Content that can be sent only once, instead of a body.
    content: Content | None
    output: str


def prepare_request(
    name: str,
    *,
    params: Mapping[str, str],
    query: Mapping[str, object],
    headers: Mapping[str, str],
    body: object,
    organization: str | None,
) -> PreparedRequest:
    """`organization` is the slug for user credentials; None for API keys."""
    if name not in ROUTES:
        raise SvcError("invalid_request", f"There is no operation '{name}'")
    method, path, audience, kind, output = ROUTES[name].split(" ")
    is_for_members = path.startswith(_ORGANIZATION)
    if is_for_members and organization is None:
        said = "This takes the slug of an organization; give the client one"
        raise SvcError("invalid_request", said, details={"field": "organization"})
    if audience == "both" and organization is not None:
        path = f"{_ORGANIZATION}{path}"
    filled = fill_path(path, {**params, **({"slug": organization} if organization else {})})
    sent = {**headers, "accept": "text/event-stream" if output == "event-stream" else "*/*"}
    data, content = _body_of(kind, body)
    if kind == "json":
        sent["content-type"] = "application/json"
    return PreparedRequest(method, f"{_VERSION}{filled}{_encode(query)}", sent, data, content, output)


def channel_path(sandbox_id: str, name: str, organization: str | None) -> str:
    """The path of a WebSocket of a sandbox."""
    template = f"/sandboxes/{{sandbox_id}}/{name}"
    if organization is not None:
        template = f"{_ORGANIZATION}{template}"
    return f"{_VERSION}{fill_path(template, {'sandbox_id': sandbox_id, 'slug': organization or ''})}"


def fill_path(template: str, params: Mapping[str, str]) -> str:
    def value_of(found: re.Match[str]) -> str:
        name = found[1]
        value = params.get(name)
        # `.` and `..` would be taken for steps in the path, even when they are escaped.
        if not isinstance(value, str) or value in ("", ".", ".."):
            said = f"{name} must not be empty" if not value else f"{name} cannot be '{value}'"
            raise SvcError("invalid_request", said, details={"field": name})
        return quote(value, safe=_PLAIN)

    return re.sub(r"\{(\w+)\}", value_of, template)


def _encode(query: Mapping[str, object]) -> str:
    given = {name: _text_of(value) for name, value in query.items() if value is not None}
    return f"?{urlencode(given)}" if given else ""


def _text_of(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _body_of(kind: str, body: Any) -> tuple[bytes | None, Content | None]:
    if kind == "none":
        return None, None
    if kind == "json":
        return json.dumps({} if body is None else body, ensure_ascii=False).encode(), None
    whole = whole_of(body)
    return (whole, None) if whole is not None else (None, body)
