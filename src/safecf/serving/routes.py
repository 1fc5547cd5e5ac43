"""The paths of the service."""

import asyncio
import json
from importlib.resources import files
from typing import Annotated, Any

from fastapi import FastAPI, Query, Request
from pydantic import BaseModel
from starlette.responses import PlainTextResponse, Response

from safecf.serving import problems
from safecf.serving.bodies import Body, Contributions, Described, Items, Similarities, make_bodies
from safecf.serving.requests import Explain, Recommend, Similar
from safecf.serving.requests import Request as Asked
from safecf.serving.service import Service
from safecf.serving.settings import Settings

JSON = "application/json"
STATIC = {
    "/": ("page.html", "text/html; charset=utf-8"),
    "/page.css": ("page.css", "text/css; charset=utf-8"),
    "/page.js": ("page.js", "text/javascript; charset=utf-8"),
    "/tail.js": ("tail.js", "text/javascript; charset=utf-8"),
    "/icon.svg": ("icon.svg", "image/svg+xml"),
}
QUESTIONS = ("/recommend", "/similar", "/explain", "/items", "/history", "/search", "/about")
PATHS = (*QUESTIONS, "/health", "/metrics", "/reload", "/openapi.json", *STATIC)
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)


def add_questions(app: FastAPI, service: Service) -> None:
    """Add what the models are asked."""
    bodies = make_bodies(service.settings)

    def add(
        path: str, body: type[Body], kind: type[Asked], answer: type[BaseModel], summary: str
    ) -> None:
        async def ask(request: Request) -> Response:
            asked = body.model_validate_json(await _json(request))
            return Response(await service.ask(kind(**asked.given())), media_type=JSON)

        ask.__name__, ask.__doc__ = path[1:], summary
        _post(app, path, ask, body, answer)

    best = "The best items of a known user, or of a history."
    add("/recommend", bodies.recommend, Recommend, Items, best)
    add("/similar", bodies.similar, Similar, Similarities, "The items most like one item.")
    why = "Which items of a history make up a score."
    add("/explain", bodies.explain, Explain, Contributions, why)

    async def items(request: Request) -> Response:
        """What is known about items, such as their titles; unknown ones are named."""
        asked = bodies.items.model_validate_json(await _json(request)).given()
        return _answered(service.describe(asked["ids"]))

    async def history(request: Request) -> Response:
        """What a known user has, if the service was started with the data."""
        asked = bodies.history.model_validate_json(await _json(request)).given()
        return _answered({"items": service.history(asked["user"])})

    _post(app, "/items", items, bodies.items, Described)
    _post(app, "/history", history, bodies.history, None)


def add_facts(app: FastAPI, service: Service) -> None:
    """Add what the service tells of itself, and the search for titles."""
    most = service.settings.max_k

    @app.get("/search", responses=problems.documented(401, 422))
    async def search(
        q: Annotated[str, Query(max_length=200, description="Words of a title.")] = "",
        k: Annotated[int, Query(ge=1, le=most)] = min(10, most),
    ) -> Response:
        """Items by their titles; without words, the most popular ones."""
        return _answered({"items": await asyncio.to_thread(service.search, q, k)})

    @app.get("/about", responses=problems.documented(401))
    async def about() -> Response:
        """The models, the limits, and the tail curves of the evaluation."""
        return _answered(service.about())

    @app.get("/health", responses=problems.documented())
    async def health(request: Request) -> Response:
        """Whether the service answers; with the token, also what it serves."""
        state = service.state()
        if not request.scope["authorized"]:
            state = {"status": state["status"]}
        return _answered(state, 503 if service.draining else 200)

    @app.get("/metrics", response_class=PlainTextResponse, responses=problems.documented(401))
    async def metrics() -> Response:
        """Counts and times, as Prometheus reads them."""
        text = service.metrics.text(service.gauges())
        return Response(text, media_type="text/plain; version=0.0.4; charset=utf-8")

    @app.post("/reload", responses=problems.documented(401, 403, 408, 409))
    async def reload() -> Response:
        """Load the files again; if one cannot be read, the old models stay."""
        # a request that ends early must not cancel what others wait for
        problem = await asyncio.shield(asyncio.wrap_future(service.live.reload()))
        if problem is not None:
            return problems.problem(409, f"the old models stay: {problem}")
        return _answered(service.state())


def add_page(app: FastAPI) -> None:
    """Add the page; its files are read once, and no path leads to any other file."""
    folder = files("safecf.serving") / "static"
    headers = {"Content-Security-Policy": POLICY, "Referrer-Policy": "no-referrer"}

    def add(path: str, name: str, media_type: str) -> None:
        content = (folder / name).read_bytes()

        async def show() -> Response:
            return Response(content, media_type=media_type, headers=headers)

        app.get(path, include_in_schema=False)(show)

    for path, (name, media_type) in STATIC.items():
        add(path, name, media_type)


def describe_token(app: FastAPI, settings: Settings) -> None:
    """Say in the OpenAPI document that requests need a token."""
    if settings.token is None:
        return
    schema = app.openapi()
    schema["components"]["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
    schema["security"] = [{"token": []}]
    schema["paths"]["/health"]["get"]["security"] = [{}, {"token": []}]


async def _json(request: Request) -> bytes:
    """Return the body; raise if it is not declared to be JSON.

    A page of another site cannot send that without the browser's asking first.
    """
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != JSON:
        raise problems.Refusal(415, "send JSON, with the header Content-Type: application/json")
    return await request.body()


def _post(
    app: FastAPI, path: str, endpoint: Any, body: type[Body], answer: type[BaseModel] | None
) -> None:
    """Add a path that takes a body, which `endpoint` checks itself."""
    content = {JSON: {"schema": body.model_json_schema()}}
    app.post(
        path,
        response_model=None,
        responses={
            **({} if answer is None else {200: {"model": answer}}),
            **problems.documented(400, 401, 403, 404, 408, 413, 415, 422, 503),
        },
        openapi_extra={"requestBody": {"required": True, "content": content}},
    )(endpoint)


def _answered(record: Any, status: int = 200) -> Response:
    return Response(json.dumps(record, allow_nan=False), status, media_type=JSON)
