"""Errors as `application/problem+json` (RFC 9457): status, title, and what to try."""

import json
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from fastapi import Request
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, ConfigDict, ValidationError
from starlette.exceptions import HTTPException
from starlette.responses import Response

from safecf.errors import ModelFitError, message_of
from safecf.serving.batching import BusyError
from safecf.serving.requests import UnknownIdError
from safecf.texts import visible

MEDIA_TYPE = "application/problem+json"
LONGEST = 500  # characters of a detail
MOST_ERRORS = 20  # that are listed

SAYS = {
    400: "The body is no JSON.",
    401: "The token is missing or wrong.",
    403: "A page of another site asks.",
    404: "A user or an item is not known.",
    408: "The request took too long.",
    409: "A file cannot be read; the old models stay.",
    413: "The body is too long.",
    415: "The body is not declared to be JSON.",
    421: "The service is called by another name than its own.",
    422: "The request does not fit the schema, or the model cannot answer it.",
    503: "Too many requests are waiting.",
}
STATUS: dict[type[Exception], int] = {
    UnknownIdError: 404,
    BusyError: 503,
    NotImplementedError: 422,
    ModelFitError: 422,  # a history whose weights are too extreme
    ValueError: 422,
}


class Refusal(HTTPException):
    """A request that is refused with this status and detail."""


class ProblemBody(BaseModel):
    """An error, as in RFC 9457."""

    model_config = ConfigDict(extra="allow")

    type: str
    title: str
    status: int
    detail: str


def documented(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Return the problems that a path may answer with, for the OpenAPI document."""
    schema = ProblemBody.model_json_schema()
    return {
        status: {"description": SAYS[status], "content": {MEDIA_TYPE: {"schema": schema}}}
        for status in sorted({*statuses, 421})
    }


def problem_body(status: int, detail: str, **more: Any) -> bytes:
    """Return a problem as JSON."""
    said = visible(detail)
    said = said if len(said) <= LONGEST else said[:LONGEST] + "…"
    title = HTTPStatus(status).phrase
    record = {"type": "about:blank", "title": title, "status": status, "detail": said, **more}
    return json.dumps(record).encode()


def problem(
    status: int, detail: str, headers: Mapping[str, str] | None = None, **more: Any
) -> Response:
    """Return a problem as a response."""
    body = problem_body(status, detail, **more)
    return Response(body, status, headers=headers, media_type=MEDIA_TYPE)


def of_exception(_: Request, error: Exception) -> Response:
    """Return the problem that an exception of the library means."""
    status = next(code for kind, code in STATUS.items() if isinstance(error, kind))
    headers = {"Retry-After": "1"} if status == 503 else None
    return problem(status, message_of(error), headers)


def of_http(_: Request, error: Exception) -> Response:
    """Return the problem that an HTTP error means, such as a path that is not served."""
    if not isinstance(error, HTTPException):
        raise error
    details = {
        404: "there is nothing at this path; see /openapi.json",
        405: "this path does not take this method; see /openapi.json",
    }
    known = None if isinstance(error, Refusal) else details.get(error.status_code)
    detail = known or str(error.detail)
    return problem(error.status_code, detail, error.headers)


# pydantic's kinds of errors, in plain words; bodies.py has those of numbers and ids
WORDS = {
    "extra_forbidden": "this key is not known",
    "missing": "it is missing",
    "list_type": "has to be a list",
    "too_long": "has a length of {actual_length}, where {max_length} is the most",
    "string_too_long": "has more than {max_length} characters",
    "int_parsing": "has to be a whole number",
    "greater_than_equal": "has to be at least {ge}",
    "less_than_equal": "has to be at most {le}",
    "model_type": 'the body has to be an object, as in {{"history": [1, 2]}}',
    "model_attributes_type": 'the body has to be an object, as in {{"history": [1, 2]}}',
}


def in_words(error: Mapping[str, Any]) -> str:
    """Return an error of pydantic in plain words.

    >>> in_words({"type": "less_than_equal", "ctx": {"le": 10}, "msg": "Input should be ..."})
    'has to be at most 10'
    """
    if error["type"] not in WORDS:
        return str(error["msg"])
    return WORDS[error["type"]].format(**error.get("ctx", {}))


def of_validation(_: Request, error: Exception) -> Response:
    """Return where a request does not fit its schema."""
    if not isinstance(error, ValidationError | RequestValidationError):
        raise error
    errors = error.errors()
    if errors[0]["type"] == "json_invalid":
        return problem(400, f"the body is no JSON: {errors[0]['ctx']['error']}")
    found = [
        {"where": ".".join(map(str, each["loc"])), "problem": in_words(each)}
        for each in errors[:MOST_ERRORS]
    ]
    where = f"{found[0]['where']}: " if found[0]["where"] else ""
    return problem(422, f"{where}{found[0]['problem']}; see /openapi.json", errors=found)


HANDLERS = {
    RequestValidationError: of_validation,
    ValidationError: of_validation,
    HTTPException: of_http,
    **dict.fromkeys(STATUS, of_exception),
}
