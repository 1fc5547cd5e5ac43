"""The bodies of requests and answers, as OpenAPI describes them."""

from typing import Annotated, Any, Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, Field
from pydantic_core import core_schema

from safecf.data.limits import LARGEST_WEIGHT, SMALLEST_WEIGHT
from safecf.serving.live import MODEL
from safecf.serving.settings import Settings


class Says:
    """Replaces pydantic's messages about a type by one in plain words.

    >>> Annotated[int | str, Says("has to be an integer or a text")]
    """

    def __init__(self, message: str) -> None:
        self._message = message

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> Any:
        """Return the schema of the type, with this message."""
        return core_schema.custom_error_schema(
            handler(source), custom_error_type="safecf", custom_error_message=self._message
        )


IdValue = Annotated[
    Annotated[int, Field(ge=-(2**63), lt=2**63)] | Annotated[str, Field(max_length=1000)],
    Says("has to be an integer of 64 bits, or a text of at most 1000 characters"),
]
Weight = Annotated[
    float,
    Field(ge=SMALLEST_WEIGHT, le=LARGEST_WEIGHT, allow_inf_nan=False),
    Says(f"has to be a number from {SMALLEST_WEIGHT:g} to {LARGEST_WEIGHT:g}"),
]
Which = Annotated[
    Literal["model", "baseline"],
    Says("has to be 'model' or 'baseline'"),
    Field(description="Which of the two served models answers."),
]
HISTORY = "What the user has, best known as original ids. Unknown ones are left out and named."
USER = (
    "A user of the training data, instead of a history. What they have is removed if the service "
    "was started with the data; else nothing is removed, and history_removed is false."
)
EXAMPLE_HISTORY: list[Any] = ["item 12", "item 40", "item 7"]


class Body(BaseModel):
    """A request; a key that is not known is refused, and no text is taken for a number."""

    model_config = ConfigDict(extra="forbid", strict=True)

    def given(self) -> dict[str, Any]:
        """Return the fields, with tuples for lists."""
        found = {name: getattr(self, name) for name in type(self).model_fields}
        return {name: tuple(v) if isinstance(v, list) else v for name, v in found.items()}


class Item(BaseModel):
    """An item of an answer; further keys are the columns of the items' file."""

    model_config = ConfigDict(extra="allow")

    id: int | str
    score: float | None = None
    title: str | None = None


class Items(BaseModel):
    """Items, best first."""

    model: str = Field(description="Class of the model that has answered.")
    generation: int = Field(description="Counts the models since the start; a reload adds one.")
    popular: bool = Field(
        False, description="Nothing is known of the user: these are the most popular items."
    )
    history_removed: bool = Field(
        description="Whether what the user has was left out. It is false with keep_history, and "
        "for a known user of whom the service has no data: exclude it yourself."
    )
    unknown: list[int | str] = Field(
        [], description="Ids of history, items and exclude that are not known."
    )
    items: list[Item]


class Similarities(BaseModel):
    """Items like another, the most alike first."""

    model: str
    generation: int
    items: list[Item]


class Contributions(BaseModel):
    """What the items of a history contribute to a score."""

    model: str
    generation: int
    item: Item
    score: float = Field(description="The sum of the contributions of the whole history.")
    unknown: list[int | str] = []
    items: list[Item] = Field(description="The largest contributions first, as scores.")


class Described(BaseModel):
    """What is known about items, in the order of the request."""

    items: list[Item]
    unknown: list[int | str] = Field(description="Ids that the model does not know.")


class Bodies(NamedTuple):
    """The bodies of requests within the limits of the settings."""

    recommend: type[Body]
    similar: type[Body]
    explain: type[Body]
    items: type[Body]
    history: type[Body]


def make_bodies(settings: Settings) -> Bodies:
    """Return the bodies of requests, whose schemas have the limits of the settings."""
    count = Annotated[
        int,
        Field(ge=1, le=settings.max_k, description="How many items."),
        Says(f"has to be a whole number from 1 to {settings.max_k}"),
    ]
    many = Annotated[list[IdValue], Field(max_length=settings.max_history)]
    confidences = Annotated[
        list[Weight],
        Field(max_length=settings.max_history, description="Confidences of the history."),
    ]

    class RecommendBody(Body):
        """A known user, or any history of items."""

        model_config = ConfigDict(
            json_schema_extra={
                "examples": [{"history": EXAMPLE_HISTORY, "k": 10}, {"user": "user 3", "k": 10}]
            },
        )

        user: IdValue | None = Field(None, description=USER)
        history: many | None = Field(None, description=HISTORY)
        weights: confidences | None = None
        k: count = 10
        exclude: many = Field([], description="Items that are not recommended, also of items.")
        items: many | None = Field(None, description="Only these are recommended.")
        keep_history: Annotated[bool, Says("has to be true or false")] = Field(
            False, description="Whether to recommend what the user has, too."
        )
        model: Which = MODEL

    class SimilarBody(Body):
        """An item of the training data."""

        model_config = ConfigDict(json_schema_extra={"examples": [{"item": "item 12", "k": 5}]})

        item: IdValue
        k: count = 10
        model: Which = MODEL

    class ExplainBody(Body):
        """An item, and whose score of it is explained: a known user's, or that of a history."""

        model_config = ConfigDict(
            json_schema_extra={
                "examples": [{"item": "item 3", "history": EXAMPLE_HISTORY, "k": 3}]
            },
        )

        item: IdValue
        user: IdValue | None = Field(
            None, description="A user of the data that the service was started with."
        )
        history: many | None = Field(None, description=HISTORY)
        weights: confidences | None = None
        k: count = 10
        model: Which = MODEL

    class ItemsBody(Body):
        """Ids of items."""

        model_config = ConfigDict(json_schema_extra={"examples": [{"ids": ["item 12"]}]})

        ids: many

    class HistoryBody(Body):
        """A user of the data."""

        model_config = ConfigDict(json_schema_extra={"examples": [{"user": "user 3"}]})

        user: IdValue

    return Bodies(RecommendBody, SimilarBody, ExplainBody, ItemsBody, HistoryBody)
