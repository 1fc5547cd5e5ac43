"""A model as a service: answers over HTTP, and a page to try them (`pip install safecf[serve]`).

>>> run(Settings("model.safetensors", baseline="ials.safetensors", items="titles.parquet"))
"""

from safecf.serving.settings import Settings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from safecf.serving.app import create_app
    from safecf.serving.server import run

__all__ = ["Settings", "create_app", "run"]

HOMES = {"create_app": "safecf.serving.app", "run": "safecf.serving.server"}

if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        """Import what needs FastAPI and uvicorn when it is asked for."""
        from importlib import import_module  # noqa: PLC0415

        if name not in HOMES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        try:
            return getattr(import_module(HOMES[name]), name)
        except ModuleNotFoundError as problem:
            raise ImportError(
                f"serving needs {problem.name}, which is not installed; try "
                "pip install 'safecf[serve]'"
            ) from problem
