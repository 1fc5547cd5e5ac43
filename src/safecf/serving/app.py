"""`create_app`: the service over HTTP."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable

from fastapi import FastAPI

from safecf import __version__
from safecf.serving import problems, routes
from safecf.serving.guard import Guard
from safecf.serving.service import Service
from safecf.serving.settings import Settings


def create_app(settings: Settings, say: Callable[[str], object] | None = None) -> FastAPI:
    """Load the files, and return the application; an error says what is wrong with a file.

    `say` is called with what is loaded, and how long it took; also when files are loaded again.

    >>> app = create_app(Settings("model.safetensors", items="titles.parquet"))
    """
    service = Service(settings, routes.PATHS, say)

    @contextlib.asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        service.start()
        try:
            yield
        finally:
            await asyncio.to_thread(service.stop)

    app = FastAPI(
        title="safecf",
        version=__version__,
        description="Recommendations that look after the worst-off users.",
        lifespan=lifespan,
        docs_url=None,  # these pages come from the network
        redoc_url=None,
        redirect_slashes=False,
        generate_unique_id_function=lambda route: route.name,
    )
    app.state.service = service
    app.add_middleware(Guard, service=service)
    for kind, handler in problems.HANDLERS.items():
        app.add_exception_handler(kind, handler)
    routes.add_questions(app, service)
    routes.add_facts(app, service)
    routes.add_page(app)
    routes.describe_token(app, settings)
    return app
