"""Passwords and tokens are found in ordinary text and replaced; ordinary text stays as it is."""

from __future__ import annotations

import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lcursor.project import redaction
from lcursor.project.redaction import PLACEHOLDER, redact, redact_all, restored, with_bytes
from lcursor.project.secrets import KEY_FORMATS, has_private_key

# In two parts each, so that this file has none.
TOKENS = {
    "GitHub": "ghp_" + "16C7e42F292c6912E7710c838347Ae178B4a",
    "GitHub, fine-grained": "github_pat_" + "11ABCDEFG0abcdefghijkl_mnopqrstuvwxyz",
    "GitLab": "glpat-" + "abcdefghijklmnopqrst",
    "Slack": "xoxb-" + "12345678901-123456789012-AbCdEfGhIjKl",
    "Stripe": "sk_live_" + "4eC39HqLyjWDarjtT1zdp7dc",
    "OpenAI": "sk-proj-" + "abcdefghijklmnopqrstuvwxyz0123456789ABCDEFGH",
    "OpenAI, old": "sk-" + "abcdefghijklmnopqrstuvwxyz0123456789ABCDEFGHIJKL",
    "Anthropic": "sk-ant-" + "api03-aaaaaaaaaaaaaaaaaaaaaaaa",
    "Google": "AIza" + "SyDaGmWKa4JsXZ-HjGw7ISLn_3namBGewQe",
    "npm": "npm_" + "abcdefghijklmnopqrstuvwxyz0123456789",
    "PyPI": "pypi-AgE" + "IcHlwaS5vcmcCJDAwMDAwMDAwLTAwMDAtMDAwMC0wMDAwLTAwMDAwMDAwMDAwMA",
    "Hugging Face": "hf_" + "abcdefghijklmnopqrstuvwxyzABCDEFGH",
    "SendGrid": "SG." + "abcdefghijklmnopqrstuv.abcdefghijklmnopqrstuvwxyz0123456789ABCDEFG",
    "Docker": "dckr_pat_" + "abcdefghijklmnopqrstuvwxyz0",
    "Amazon": "AKIA" + "IOSFODNN7EXAMPLE",
    "JWT": "eyJ" + "hbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U",
}
VALUES = [
    ("ID = AKIA" + "IOSFODNN7EXAMPLE\nSECRET = '{}'", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"),
    ("AccountName=x;AccountKey={};EndpointSuffix=core", "QUJD" * 20 + "=="),
    ("url = 'postgres://u:{}@db/x'", "hunter2"),
    ("REDIS=rediss://:{}@cache.internal:6379", "s3cr3t-value"),
    ("git clone https://me:{}@github.com/a/b", "a1b2c3d4e5f6a7b8"),
    ("curl -H 'Authorization: Basic {}'", "dXNlcjpodW50ZXIy"),
    ('"Authorization": "Bearer {}",', "abcdefghijklmnop1234"),
    ("//registry.test/:_authToken={}", "abcdef-123456"),
    ("    client-key-data: {}", "LS0tLS1CRUdJTiBDRVJU"),
    ("me:{}", "$apr1$" + "abcdefgh$0123456789abcdefghijkl"),
]  # fmt: skip
ORDINARY = [
    "task-abcdefghijklmnopqrstuvwxyz0123456789ABCDEFGHIJ",
    ".sk-fading-circle-with-a-very-long-name-of-a-class {}",
    "ghp_short = npm_install(hf_hub)",
    "http://user:password@proxy.example.com/",
    "postgres://postgres:postgres@localhost/test",
    "postgres://user:${PASSWORD}@db/x",
    "postgres://user:%s@db/x",
    "https://host:8080/a@b",
    "see https://github.com/a/b and mail@example.org",
    "Authorization: Basic dXNlcm5hbWU6cGFzc3dvcmQ=",
    "Authorization: Bearer <token>",
    "Authorization: Bearer YOUR_ACCESS_TOKEN_HERE",
    "postgres://user:devpassword@localhost:5432/x",
    "mysql://root:long-password@127.0.0.1/x",
    "proxy_auth=proxy.raw_auth,",
    "secret = 'a value of less than forty characters'",
    "aws_secret = hashlib.sha1(data).hexdigest()",
    "password = input()",
    PLACEHOLDER,
]


@pytest.mark.parametrize("kind", TOKENS)
def test_a_token_in_a_text_is_replaced(kind: str) -> None:
    for before, after in (("", ""), ('key = "', '"\n'), ("a\n", " b"), ("x=", ",y")):
        found = redact(f"{before}{TOKENS[kind]}{after}")
        assert found == (f"{before}{PLACEHOLDER}{after}", 1)


@pytest.mark.parametrize(("text", "value"), VALUES)
def test_a_value_after_its_name_is_replaced(text: str, value: str) -> None:
    made, count = redact(text.replace("{}", value))
    assert value not in made
    assert text.partition("{}")[2] == made.rpartition(PLACEHOLDER)[2]
    assert count == made.count(PLACEHOLDER)
    assert redact(made) == (made, 0)


KEY_BEGINNING = "-----BEGIN " + "RSA PRIVATE KEY-----\n" + "MIIEpAIBAAKCAQEA" * 4
FOUND = [*TOKENS.values(), *(text.replace("{}", value) for text, value in VALUES), KEY_BEGINNING]
AROUND = st.lists(st.sampled_from([*" \"'\\\n\t;,{}", "é", "\\n"]), max_size=4).map("".join)


@given(AROUND, st.sampled_from(FOUND), AROUND)
def test_json_with_a_secret_value_stays_json(before: str, text: str, after: str) -> None:
    for sent in ({"command": f"{before}{text}{after}"}, [text, f"{text}{after}{text}"]):
        made, count = redact(json.dumps(sent, ensure_ascii=False))
        assert type(json.loads(made)) is type(sent)
        assert count == made.count(PLACEHOLDER)
        assert redact(json.dumps(json.dumps(sent)))[0].count('"') == (
            json.dumps(json.dumps(sent)).count('"')
        )
        json.loads(json.loads(redact(json.dumps(json.dumps(sent)))[0]))


@pytest.mark.parametrize("text", FOUND)
@pytest.mark.parametrize("before", ["", "\n", "\t", '"', "é "])
def test_a_secret_value_in_json_is_replaced(before: str, text: str) -> None:
    made, count = redact(json.dumps({"command": f'x{before}\n{text}\n"', "more": 1}))
    assert count == redact(text)[1]
    assert json.loads(made)["command"].partition(PLACEHOLDER)[2].endswith(('\n"', '"'))


HINTS = {*(hint for each in redaction.TOKENS for hint in each.hints)}
HINTS |= {*(each.hint for each in KEY_FORMATS), "aws_ secret", "://a:", "://u:abcdef@", "aws_ key="}
PARTS = ["", " ", "a", "\n", "1a", "a-", "A ", "\\", "\\n", "secret", "example.", "PRIVATE KEY"]


def _search_s(text: str) -> float:
    """Return the least processor time of several searches of a text."""
    times = []
    for _ in range(3):
        begin = time.thread_time()
        redact(text)
        has_private_key(text.encode())
        times.append(time.thread_time() - begin)
    return min(times)


@pytest.mark.parametrize("part", PARTS)
def test_the_time_of_a_search_grows_with_the_length_of_a_text_only(part: str) -> None:
    for hint in sorted(HINTS):
        times = [_search_s(hint + (part or hint) * count) for count in (2_000, 8_000)]
        assert times[1] <= 8 * times[0] + 0.02, hint


@pytest.mark.parametrize("text", ORDINARY)
def test_ordinary_text_stays(text: str) -> None:
    assert redact(text) == (text, 0)


def test_the_rest_of_a_private_key_is_replaced() -> None:
    start, lines = "-----BEGIN " + "RSA PRIVATE KEY-----", "MIIEowIBAAKCAQEA1234567890\n" * 20
    made, count = redact(f"a\n{start}\n{lines}-----END RSA PRIVATE KEY-----\nb")
    assert made == f"a\n{start}{PLACEHOLDER}-----END RSA PRIVATE KEY-----\nb"
    assert count == 1


def test_all_texts_of_a_request_are_searched() -> None:
    token = TOKENS["GitHub"]
    rest = {"model": "m", "n": 3, "stream": True, "stop": None}
    asked = ({"role": "user", "content": f"a {token}"}, {"content": token})
    sent = [{"role": "user", "content": f"a {PLACEHOLDER}"}, {"content": PLACEHOLDER}]
    assert redact_all({**rest, "messages": asked}) == ({**rest, "messages": sent}, 2)


def test_lines_that_a_model_repeats_get_their_values_back() -> None:
    one, two = TOKENS["GitHub"], TOKENS["GitLab"]
    old = ["def f():", f'    a = "{one}"', f'    b = "{two}"']
    shown = redact("\n".join(old))[0].split("\n")
    assert restored(shown, old) == (*old,)
    assert restored([f"  {line}" for line in shown], old) == tuple(f"  {line}" for line in old)
    assert restored(["x = 1"], old) == ("x = 1",)
    other = f'    c = "{PLACEHOLDER}"'
    assert restored([other, shown[1]], old) == (other, old[1])


def test_a_value_is_not_taken_from_one_of_several_lines() -> None:
    old = [f"key = {TOKENS['GitHub']}", f"key = {TOKENS['GitLab']}", f"key = {TOKENS['GitLab']}"]
    assert restored([f"key = {PLACEHOLDER}"], old) == (f"key = {PLACEHOLDER}",)
    assert restored([f"key = {PLACEHOLDER}"], old[1:]) == (old[1],)


BYTES = ("# caf\udce9", "x = 1", "y = '\udcff'")


@pytest.mark.parametrize(
    ("new", "expected"),
    [
        (("# caf\ufffd", "x = 2", "y = '\ufffd'"), ("# caf\udce9", "x = 2", "y = '\udcff'")),
        (("# the caf\ufffd", "z = '\ufffd'"), ("# the caf\udce9", "z = '\udcff'")),
        (("y = '\ufffd'", "x = 2"), ("y = '\udcff'", "x = 2")),
        (("  y = '\ufffd'", "", "\ufffd\ufffd"), ("  y = '\udcff'", "", "\ufffd\ufffd")),
        (("y = '\ufffd'", "# caf\ufffd"), ("y = '\udcff'", "# caf\udce9")),
        (("x = 2",), ("x = 2",)),
        ((), ()),
    ],
)
def test_bytes_that_are_not_utf_8_stay(new: tuple[str, ...], expected: tuple[str, ...]) -> None:
    assert with_bytes(new, BYTES) == expected


def test_bytes_are_not_taken_from_one_of_several_lines() -> None:
    assert with_bytes(["# caf\ufffd"], ["# caf\udce9", "# caf\udce8"]) == ("# caf\ufffd",)
