"""Whatever a program sends, the server answers and never fails: requests made from the API's own description."""

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
    unsupported_method,
)
from taking_part import KEY, json_answers

N_EXAMPLES = 15
CHECKS = (
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
    unsupported_method,
)
QUIET = settings(
    max_examples=N_EXAMPLES,
    deadline=None,
    derandomize=True,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)


def operations(app):
    schema = schemathesis.openapi.from_asgi("/api/v1/openapi.json", app)
    return [found.ok() for found in schema.get_all_operations()]


@pytest.mark.parametrize("template", [pytest.param("likert", marks=pytest.mark.slow), "chat"])
def test_no_request_makes_the_server_fail(template, make_study, site):
    study = make_study(template, n_items=2, design={"judgments_per_item": None}, recruitment={"quota": None})
    there = site(study, messages_per_minute=0)
    for operation in operations(there.app):
        program = there.open_api()
        if template == "chat":
            program.walk_to(study, "chat")
        assert send_many(operation, KEY if operation.path == "/sessions" else program.token) >= N_EXAMPLES / 2


def send_many(operation, token):
    """Sends what the description of one operation allows, and what it does not; gives how many were sent."""
    n_sent = 0

    @QUIET
    @given(case=operation.as_strategy())
    def send(case):
        nonlocal n_sent
        response = case.call(headers={"Authorization": f"Bearer {token}"})
        case.validate_response(response, checks=list(CHECKS))
        n_sent += 1

    send()
    return n_sent


@pytest.mark.parametrize("kind", ["consent", "pre", "item", "post"])
def test_no_answer_makes_the_server_fail(kind, make_study, site):
    study = make_study("likert", n_items=2)
    there = site(study)
    program = there.open_api()
    shown = program.walk_to(study, kind)
    good = json_answers(study, shown)
    texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
    values = st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | texts,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
        max_leaves=4,
    )
    names = st.sampled_from([*good, "unknown"])

    @QUIET
    @given(changed=st.dictionaries(names, values, min_size=1, max_size=3))
    def send(changed):
        response = program.submit("no-such-screen" if changed == good else shown["screen"], good | changed)
        assert response.status_code in (200, 409, 422), response.text

    send()


@pytest.mark.parametrize("path", ["/s", "/start", "/s/chat", "/s/chat/retry", "/s/draft"])
def test_no_form_makes_the_server_fail(path, site):
    there = site(screens_per_minute=0)
    browser = there.browser().start()
    csrf = browser.fields["csrf"]

    @QUIET
    @given(
        body=st.binary(max_size=200),
        kind=st.sampled_from(["application/x-www-form-urlencoded", "application/json", "x"]),
    )
    def send(body, kind):
        headers = {"content-type": kind, "x-csrf-token": csrf}
        content = body if kind == "application/json" else f"csrf={csrf}&screen=consent&token=t&".encode() + body
        response = browser.client.post(path, content=content, headers=headers, follow_redirects=False)
        assert response.status_code < 500, response.text

    send()
