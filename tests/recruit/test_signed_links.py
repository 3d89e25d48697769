"""Links that are signed: by the study's own secret, and by Prolific."""

from __future__ import annotations

import base64
import csv
import hashlib
import json
from urllib.parse import parse_qsl, urlsplit

import pytest

from dialometer.design.load import load_study
from dialometer.errors import DialometerError
from dialometer.recruit import prolific_token
from dialometer.recruit.platform import PlatformError
from dialometer.recruit.platforms import prolific
from dialometer.recruit.prolific_token import DAY_S, Keys, is_rs256, token_problem
from dialometer.recruit.signed_links import signature, signature_problem
from dialometer.storage.access.secrets import SIGNING
from dialometer.storage.store import Store
from dialometer.web.rater.arrival import NotSigned, Signing, read_arrival

URL = "https://study.example.org"
NOW_S = 1_800_000_000.0
MODULUS = int(
    "a47a8cc657c17cb8de87b012b636271091c0d586f5673de4f347e18065c961cff2577305d58267e963702a6aa3c3406fac2e"
    "f8d0ca00c5ebd85c89573181f048d10c7c3940eae15bf08c8708747a81a0cfa09c78d98abd617eb48d1f38959f4d56f0fdb3"
    "c40431b6462d3648131fafd6722d5d6a7518d95384ec775e9e12b47f",
    16,
)
PRIVATE = int(
    "5fd7dda2524eb84bcdb8499c8dbafe86843856f4be997b92a744f29d6c32ae218b78f3d8a972c4f455f26d75189a5538fd9f"
    "9d73a4d25082bee02553bed095e01951bfb10e5bcea2e04c9b7e80a591b2cb8fdd5d27f4332c3a2fb44cc0487004fb28c617"
    "5f28310331a5a9a5c2a97682b1ff3d4dd7009a906388c33975a40281",
    16,
)
SIGNED_BY_OPENSSL = bytes.fromhex(
    "3d3dd7ddddcdd5fd03eaca332e134c9b9c2e6f391ccb2a9dc5931d40bcbbf84a3439dc067d3650de5df30edca6e91fb47c31"
    "3e00cc5b0a61396370687ed61eacf24f954d9b355d47b419e70671cb2a5c19560d66fb7b6ace8c723693129b5b9e00266e6e"
    "25bfc1c2250b14cc76a9e064862725f32d2496fcf79b4092aedc828e"
)

QUERY = {"PROLIFIC_PID": "5f3a", "STUDY_ID": "77", "SESSION_ID": "31"}


def signed(claims, header=None, private=PRIVATE):
    """A token as Prolific makes it: RS256 with the key above."""
    parts = [header or {"alg": "RS256", "kid": "k1", "typ": "JWT"}, claims]
    text = ".".join(base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=") for part in parts)
    info = bytes.fromhex("3031300d060960864801650304020105000420") + hashlib.sha256(text.encode()).digest()
    padded = b"\x00\x01" + b"\xff" * (128 - len(info) - 3) + b"\x00" + info
    number = pow(int.from_bytes(padded, "big"), private, MODULUS)
    return f"{text}.{base64.urlsafe_b64encode(number.to_bytes(128, 'big')).decode().rstrip('=')}"


def claims(**changes):
    return {"exp": NOW_S + 60, "aud": f"{URL}/", "prolific": {**QUERY, "workspace_id": "w"}, **changes}


def problem(token, query=QUERY, host="study.example.org"):
    keys = Keys(lambda: {"k1": (MODULUS, 65537)})
    return token_problem(token, query, list(QUERY), host, NOW_S, keys)


def test_signatures_are_checked_as_openssl_makes_them():
    message = b"a message that OpenSSL signed"
    assert is_rs256(message, SIGNED_BY_OPENSSL, (MODULUS, 65537))
    assert not is_rs256(message + b"!", SIGNED_BY_OPENSSL, (MODULUS, 65537))
    assert not is_rs256(message, SIGNED_BY_OPENSSL[:-1] + b"x", (MODULUS, 65537))
    assert not is_rs256(message, SIGNED_BY_OPENSSL[1:], (MODULUS, 65537))
    assert not is_rs256(message, b"", (MODULUS, 65537))


def test_a_token_of_prolific_proves_the_rater():
    assert problem(signed(claims())) == ""
    assert problem(signed(claims(aud=["other.org", "STUDY.example.org"]))) == ""


@pytest.mark.parametrize(
    ("token", "why"),
    [
        (signed(claims(exp=NOW_S)), "expired"),
        (signed(claims(exp=None)), "expired"),
        (signed(claims(aud="https://evil.example")), "another address"),
        (signed(claims(aud=None)), "another address"),
        (signed(claims(prolific={**QUERY, "PROLIFIC_PID": "mallory"})), "another rater"),
        (signed(claims(prolific=None)), "another rater"),
        (signed(claims(), header={"alg": "none", "kid": "k1"}), "another way"),
        (signed(claims(), header={"alg": "HS256", "kid": "k1"}), "another way"),
        (signed(claims(), header={"alg": "RS256", "kid": "other"}), "wrong signature"),
        (signed(claims(), private=PRIVATE - 2), "wrong signature"),
        (signed(claims()).rsplit(".", 1)[0] + ".", "wrong signature"),
        ("", "cannot be read"),
        ("a.b", "cannot be read"),
        ("é.é.é", "cannot be read"),
        ("W10.W10.W10", "cannot be read"),
        ("x" * 9_000, "cannot be read"),
    ],
)
def test_other_tokens_prove_nothing(token, why):
    assert why in problem(token)


def test_keys_are_fetched_once_a_day_and_for_new_names_only_now_and_then():
    at, fetched = [0.0], []

    def fetch():
        fetched.append(at[0])
        if at[0] > 2 * DAY_S:
            raise PlatformError("no answer")
        return {"k1": (5, 3)}

    keys = Keys(fetch, clock=lambda: at[0])
    assert keys.get("k1") == (5, 3)
    assert keys.get("unknown") is None
    assert keys.get("unknown") is None
    assert fetched == [0.0], "guessed names do not make the server ask again and again"
    at[0] = 61
    assert keys.get("unknown") is None
    assert fetched == [0.0, 61]
    at[0] = 2 * DAY_S + 1
    assert keys.get("k1") == (5, 3), "while Prolific does not answer, the old keys serve"
    at[0] = 0.0
    with pytest.raises(PlatformError):
        Keys(lambda: (_ for _ in ()).throw(PlatformError("no answer"))).get("k1")


def test_own_signatures_hold_for_one_rater_and_a_time():
    key = b"k" * 32
    link = {"rater": "ann", "sig": signature(key, "redirect", "ann", "100"), "expires": "100"}
    assert signature_problem(key, "redirect", "ann", link, 99) == ""
    assert "expired" in signature_problem(key, "redirect", "ann", link, 100)
    assert "wrong" in signature_problem(key, "redirect", "bob", link, 99)
    assert "wrong" in signature_problem(key, "other", "ann", link, 99)
    assert "wrong" in signature_problem(b"x" * 32, "redirect", "ann", link, 99)
    assert "wrong" in signature_problem(key, "redirect", "ann", {**link, "expires": "900"}, 99)
    assert "wrong" in signature_problem(key, "redirect", "ann", {**link, "sig": "\ud800"}, 99)
    assert "not signed" in signature_problem(key, "redirect", "ann", {"rater": "ann"}, 99)


@pytest.fixture
def people(tmp_path):
    file = tmp_path / "people.csv"
    file.write_text("id,mail\nann & co,ann@example.org\nbo,bo@example.org\n", encoding="utf-8")
    return file


def test_a_list_gets_links_that_the_study_lets_in(make_study, dialometer, people):
    folder = make_study(platform="redirect", signed=True)
    told = json.loads(dialometer("recruit", "links", folder, people, "--url", URL, "--days", "2", "--json"))
    assert (told["people"], told["is_required"]) == (2, True)
    with people.with_name("people-links.csv").open(encoding="utf-8") as opened:
        rows = list(csv.DictReader(opened))
    study = load_study(folder)
    with Store.open(folder / "study.db") as store:
        key = store.secrets.get(SIGNING, 0)
        assert store.secrets.get(SIGNING, 9) == key
    assert not [
        path for path in folder.iterdir() if path.name != "study.db" and key.hex().encode() in path.read_bytes()
    ]
    for row, name in zip(rows, ("ann & co", "bo"), strict=True):
        query = dict(parse_qsl(urlsplit(row["link"]).query))
        arriving = read_arrival(study, query, Signing(lambda: key, "x", int(query["expires"]) - 1))
        assert (arriving.external_id, arriving.is_proven) == (name, True)
        with pytest.raises(NotSigned, match="expired"):
            read_arrival(study, query, Signing(lambda: key, "x", int(query["expires"])))
    with pytest.raises(NotSigned, match="not signed"):
        read_arrival(study, {"rater": "bo"}, Signing(lambda: key, "x", 0))
    people.write_text("id\nbo\nbo\n")
    assert "on line 2 too" in dialometer("recruit", "links", folder, people, "--url", URL, fails=True)


def test_prolific_s_token_is_asked_for_and_drafted(make_study, monkeypatch):
    monkeypatch.setattr(prolific, "KEYS", Keys(lambda: {"k1": (MODULUS, 65537)}))
    study = load_study(make_study(signed=True))
    signing = Signing(lambda: b"", "study.example.org", NOW_S)
    arriving = read_arrival(study, {**QUERY, prolific_token.TOKEN: signed(claims())}, signing)
    assert (arriving.external_id, arriving.is_proven) == ("5f3a", True)
    assert prolific_token.TOKEN not in arriving.params
    for query in (QUERY, {**QUERY, "PROLIFIC_PID": "mallory", prolific_token.TOKEN: signed(claims())}):
        with pytest.raises(NotSigned):
            read_arrival(study, query, signing)
    draft = prolific.Prolific(study.spec.recruitment).draft_of(study, URL, minutes=10)
    assert draft["is_external_study_url_secure"] is True


def test_prolific_s_token_is_for_the_study_that_was_made_there(make_study, monkeypatch):
    """Anybody can publish a study on Prolific that leads here; its tokens are signed, and for this address."""
    monkeypatch.setattr(prolific, "KEYS", Keys(lambda: {"k1": (MODULUS, 65537)}))
    folder = make_study(signed=True)
    study = load_study(folder)
    signing = Signing(lambda: b"", "study.example.org", NOW_S)
    link = {**QUERY, prolific_token.TOKEN: signed(claims())}
    (folder / "prolific.json").write_text(json.dumps({"study_id": "77", "bonuses": []}))
    assert read_arrival(study, link, signing).is_proven
    (folder / "prolific.json").write_text(json.dumps({"study_id": "78", "bonuses": []}))
    for query in (link, {name: value for name, value in link.items() if name != "STUDY_ID"}):
        with pytest.raises(NotSigned, match="another study"):
            read_arrival(study, query, signing)
    (folder / "prolific.json").write_text("[")
    assert read_arrival(study, link, signing).is_proven


def test_an_open_link_has_nothing_to_sign(make_study):
    with pytest.raises(DialometerError, match="name nobody, so there is nothing to sign"):
        load_study(make_study(platform="link", signed=True))
