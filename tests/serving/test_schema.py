"""The OpenAPI document against the service: requests drawn from it by schemathesis."""

import pytest

pytest.importorskip("schemathesis")

import schemathesis
from hypothesis import given, settings
from hypothesis import strategies as st
from schemathesis import GenerationMode
from schemathesis.specs.openapi.checks import positive_data_acceptance

from tests.serving.conftest import named
from tests.serving.service import running

WITH_INPUT = [("POST", path) for path in ("/recommend", "/similar", "/explain")]
WITH_INPUT += [("POST", path) for path in ("/items", "/history")]
WITH_INPUT += [("GET", "/search")]
CASES = [(*each, mode) for each in WITH_INPUT for mode in GenerationMode]
CASES += [("GET", path, GenerationMode.POSITIVE) for path in ("/about", "/health", "/metrics")]


@pytest.fixture(scope="module")
def served(folder):
    files = (folder / "model.safetensors", folder / "baseline.safetensors")
    with running(*files, folder / "titles.parquet", data=named()) as service:
        document = service.client().get("/openapi.json").json
        yield service, schemathesis.openapi.from_dict(document)


@pytest.mark.parametrize(("method", "path", "mode"), CASES)
def test_answers_to_drawn_requests_fit_the_document(served, method, path, mode):
    service, schema = served
    operation = schema[path][method]

    @settings(max_examples=60)
    @given(st.data())
    def check(data):
        case = data.draw(operation.as_strategy(generation_mode=mode))
        # to JSON Schema 1.0 is an integer and a user beside a history is fine; to the service not
        case.call_and_validate(
            base_url=f"http://127.0.0.1:{service.port}", excluded_checks=[positive_data_acceptance]
        )

    check()
