"""The bodies of requests and answers, as OpenAPI describes them."""

from typing import Annotated, Any, Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, Strict, model_validator

from safecf.serving.live import MODEL
from safecf.serving.requests import Explain, Id, Recommend, Similar
from safecf.serving.settings import Settings

IdValue = (
    Annotated[int, Strict(), Field(ge=-(2**63), lt=2**63)]
    | Annotated[str, Strict(), Field(max_length=1000)]
)
Weight = Annotated[float, Field(gt=0, le=1e12, allow_inf_nan=False)]
Which = Annotated[
    Literal["model", "baseline"], Field(description="Which of the two served models answers.")
]
HISTORY = "What the user has, best known as original ids. Unknown ones are left out and named."
EXAMPLE_HISTORY: list[Any] = ["item 12", "item 40", "item 7"]


class Body(BaseModel):
    """A request; a key that is not known is refused."""

    model_config = ConfigDict(extra="forbid")

    def asked(self) -> Any:
        """Return what the service is asked."""
        raise NotImplementedError


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
    unknown: list[int | str] = Field([], description="Items of the request that are not known.")
    items: list[Item]


class Contributions(BaseModel):
    """What the items of a history contribute to a score."""

    model: str
    generation: int
    item: Item
    score: float = Field(description="The sum of the contributions of the whole history.")
    unknown: list[int | str] = []
    items: list[Item] = Field(description="The largest contributions first, as scores.")


class Bodies(NamedTuple):
    """The bodies of requests within the limits of the settings."""

    recommend: type[Body]
    similar: type[Body]
    explain: type[Body]
    items: type[Body]


def make_bodies(settings: Settings) -> Bodies:
    """Return the bodies of requests, whose schemas have the limits of the settings."""
    count = Annotated[int, Strict(), Field(ge=1, le=settings.max_k, description="How many items.")]
    many = Annotated[list[IdValue], Field(max_length=settings.max_history)]
    confidences = Annotated[
        list[Weight],
        Field(max_length=settings.max_history, description="Confidences of the history."),
    ]

    class RecommendBody(Body):
        """A known user, or any history of items."""

        model_config = ConfigDict(
            extra="forbid",
            json_schema_extra={
                "examples": [{"history": EXAMPLE_HISTORY, "k": 10}, {"user": "user 3", "k": 10}]
            },
        )

        user: IdValue | None = Field(None, description="A user of the training data.")
        history: many | None = Field(None, description=HISTORY)
        weights: confidences | None = None
        k: count = 10
        exclude: many = Field([], description="Items that are not recommended.")
        items: many | None = Field(None, description="Only these are recommended.")
        keep_history: bool = Field(False, description="Whether to recommend the history, too.")
        model: Which = MODEL

        @model_validator(mode="after")
        def one_of_both(self) -> Any:
            """Raise unless there is a user or a history."""
            if (self.user is None) == (self.history is None):
                raise ValueError("give either a user or a history")
            if self.weights is not None and len(self.weights) != len(self.history or ()):
                raise ValueError("give one weight for each item of the history")
            return self

        def asked(self) -> Recommend:
            history = None if self.history is None else tuple(self.history)
            weights = None if self.weights is None else tuple(self.weights)
            only = None if self.items is None else tuple(self.items)
            return Recommend(
                self.user,
                history,
                weights,
                self.k,
                tuple(self.exclude),
                only,
                self.keep_history,
                self.model,
            )

    class SimilarBody(Body):
        """An item of the training data."""

        model_config = ConfigDict(
            extra="forbid", json_schema_extra={"examples": [{"item": "item 12", "k": 5}]}
        )

        item: IdValue
        k: count = 10
        model: Which = MODEL

        def asked(self) -> Similar:
            return Similar(self.item, self.k, self.model)

    class ExplainBody(Body):
        """A history, and the item whose score is explained."""

        model_config = ConfigDict(
            extra="forbid",
            json_schema_extra={
                "examples": [{"item": "item 3", "history": EXAMPLE_HISTORY, "k": 3}]
            },
        )

        item: IdValue
        history: many = Field(description=HISTORY)
        weights: confidences | None = None
        k: count = 10
        model: Which = MODEL

        @model_validator(mode="after")
        def one_each(self) -> Any:
            """Raise unless there is a weight for every item."""
            if self.weights is not None and len(self.weights) != len(self.history):
                raise ValueError("give one weight for each item of the history")
            return self

        def asked(self) -> Explain:
            weights = None if self.weights is None else tuple(self.weights)
            return Explain(self.item, tuple(self.history), weights, self.k, self.model)

    class ItemsBody(Body):
        """Ids of items."""

        model_config = ConfigDict(
            extra="forbid", json_schema_extra={"examples": [{"ids": ["item 12"]}]}
        )

        ids: many

        def asked(self) -> list[Id]:
            """Return the ids."""
            return list(self.ids)

    return Bodies(RecommendBody, SimilarBody, ExplainBody, ItemsBody)
