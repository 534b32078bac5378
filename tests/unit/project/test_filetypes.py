from __future__ import annotations

from base64 import b64encode
from pathlib import Path

import pytest

from lcursor.project import filetypes, secrets
from scripts import gen_docs

ROOT = Path(__file__).resolve().parents[3]


@pytest.mark.parametrize(
    ("path", "size_bytes", "why"),
    [
        ("a.py", 100, ""),
        ("a/b c/\udcff.py", 100, ""),
        ("LICENSE", 100, ""),
        (".github/workflows/ci.yml", 100, ""),
        ("a.py", (1 << 20) + 1, "larger than 1 MB"),
        ("logo.PNG", 10, "binary (.png)"),
        ("model.gguf", 10, "binary (.gguf)"),
        ("package-lock.json", 10, "a lock file"),
        ("sub/poetry.lock", 10, "a lock file"),
        ("app.min.js", 10, "minified, or a source map"),
        ("app.js.map", 10, "minified, or a source map"),
        ("admin.js", 10, ""),
        ("rows.csv", 300_000, "data larger than 256 kB"),
        ("rows.csv", 3000, ""),
        ("code.py", 300_000, ""),
    ],
)
def test_a_name_is_the_reason_why_a_file_is_left_out(path: str, size_bytes: int, why: str) -> None:
    assert filetypes.by_name(path, size_bytes) == why


@pytest.mark.parametrize(
    "path",
    [
        ".env",
        "a/.env.local",
        "prod.env",
        "a/.env-old",
        "server.PEM",
        "a/id_rsa",
        "home/.ssh/config",
        "credentials.json",
        "my_credentials.yml",
        "a/client_secret_1.json",
        ".npmrc",
        "secrets.yaml",
        "secret.json",
        "Secrets.toml",
        "secrets.prod.json",
        "secrets.enc.yaml",
        "secrets.json.bak",
        "secrets.sh",
        "secrets.h",
        "secrets",
        "a/secret",
        "terraform.tfstate.backup",
        ".aws/config",
        "a/.kube/config",
        "/home/x/.config/gh/hosts.yml",
        "wp-config.php",
        "wp-config.php.bak",
        "odd\nname.key",
        "kubeconfig",
        "config/kubeconfig-prod.yml",
        "terraform.tfvars.json",
        ".vault_pass",
        "group_vars/all/vault.yml",
        "settings.local.json",
        "local_settings.py",
        "htpasswd",
        "passwords.txt",
        "creds.json",
        "accessKeys.csv",
        "api_key.txt",
        "github_token.txt",
        "my-project-firebase-adminsdk-abc.json",
        "google-services.json",
        ".m2/settings.xml",
        ".gradle/gradle.properties",
        "pip.conf",
        ".dev.vars",
        "wg0.conf",
        "ssh_host_ed25519_key",
        "deploy_key",
        ".bash_history",
        "config/database.yml",
        "db-secret.yaml",
        "k8s/secrets/prod.yaml",
        "key4.db",
        "backup.sql.gz",
        "prod.dump",
        "keystore/UTC--2020-01-01",
    ],
)
def test_files_that_hold_secrets_are_left_out(path: str) -> None:
    assert filetypes.by_name(path, 10) == "its name says that it holds secrets"


@pytest.mark.parametrize(
    "path",
    [
        ".env.example",
        "id_rsa.pub",
        "environment.py",
        "tokens.py",
        "secrets.py",
        "lib/secret.go",
        "secrets.rs",
        "secret.test.ts",
        "secrets.md",
        "secretsjson.py",
        "keys.py",
        "a.key/b.py",
        "settings.json",
        "gradle.properties",
        "kubeconfig.go",
        "vault.py",
        "password.py",
        "secrets/reader.py",
        "history.py",
        "wg.conf.md",
        "database.yml",
        "dump.py",
        "my.env.md.py",
    ],
)
def test_files_that_only_sound_like_it_are_read(path: str) -> None:
    if path == "my.env.md.py":  # by the same globs as in the editor
        assert secrets.is_secret_path(path)
    else:
        assert filetypes.by_name(path, 10) == ""


def test_the_editor_and_the_index_know_the_same_secrets() -> None:
    assert (ROOT / "lua/lcursor/editor/boundary.lua").read_text() == gen_docs.lua_boundary()


# In two parts each, so that this file has none.
KEY = b"-----BEGIN " + b"RSA PRIVATE KEY-----\nabc\n"


MINIFIED = b"function a(b){return c[b]?d(b):e.f(b,function(g){h+=g})}"
ROWS = b"const a = 1\n" * 4000


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"x = 1\n", ""),
        (b"", "empty"),
        (b"a\0b", "binary"),
        (b"\xff\xfea\0b\0\n\0", ""),
        (b"\xef\xbb\xbfx = 1\n", ""),
        (b"x = '''" + KEY, "a private key in it"),
        (b"\xff\xfe" + KEY.decode().encode("utf-16-le"), "a private key in it"),
        (b"AGE-SECRET-KEY-" + b"1QL3Z7HJY54PW3\n", "a private key in it"),
        (b"PuTTY-User-Key-File-" + b"3: ssh-rsa\n", "a private key in it"),
        (b'find("PuTTY-User-Key-File-")\n', ""),
        (b'{"private_key": "-----BEGIN ' + b'PRIVATE KEY-----\\nMIIE"}', "a private key in it"),
        (b"---- BEGIN SSH2 " + b"ENCRYPTED PRIVATE KEY ----", "a private key in it"),
        (b"key: " + b64encode(KEY), "a private key in it"),
        (b"key: " + b64encode(b"a" + KEY), "a private key in it"),
        (b"key: " + b64encode(b"ab" + KEY), "a private key in it"),
        (b'{"kty":"EC", "d": "' + b"A" * 43 + b'"}', "a private key in it"),
        (b'{"kty":"EC", "x": "' + b"A" * 43 + b'"}', ""),
        (b"PrivateKey = " + b"yAnz5TF+lXXJte14tji3zlMNq+hd2rYUIgJBgB3fBmk=", "a private key in it"),
        (b"PrivateKey = load(path)\n", ""),
        (b"key: " + b64encode(b"-----BEGIN CERTIFICATE-----"), ""),
        (b"# BEGIN PRIVATE KEY is what a file begins with\n", ""),
        (b"// Code generated by protoc. DO NOT EDIT.\n", "generated, as it says itself"),
        (b"/**\n * @generated SignedSource\n */\n", "generated, as it says itself"),
        (b'text = "Code generated by x, DO NOT EDIT"\n', ""),
        (b"x" * 812 + b"\n" + b"y" * 812, "generated: average line of 812 characters"),
        (MINIFIED * 90, "generated: average line of 5040 characters"),
        (b"A paragraph on one line. " * 200, ""),
        ("漢字の長い段落。".encode() * 200, ""),
        (ROWS + b"x" * 60_000, "generated: 55 % of it in lines of over 1,000 bytes"),
        (ROWS + b"a word and " * 6000, ""),
        (ROWS + b"x" * 6_000, ""),
        (b"\n" * 2000, ""),
    ],
)
def test_a_content_is_the_reason_why_a_file_is_left_out(data: bytes, why: str) -> None:
    assert filetypes.by_content(data) == why


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"", ""),
        ("é→🙂".encode(), "é→🙂"),
        (b"\xef\xbb\xbfx", "x"),
        (b"caf\xe9", "café"),
        (b"\xff\xfe" + "é\n".encode("utf-16-le"), "é\n"),
        (b"\xfe\xff" + "é\n".encode("utf-16-be"), "é\n"),
        (b"\xff\xfe\x00\x00" + "é".encode("utf-32-le"), "é"),
        (b"\xff\xfeodd", "摯�"),
        (b"\xc3", "Ã"),
    ],
)
def test_every_content_has_a_text(data: bytes, text: str) -> None:
    assert filetypes.decode(data) == text


def test_our_own_sources_are_indexed() -> None:
    left_out = {}
    for path in [*ROOT.glob("lcursor/**/*.py"), *ROOT.glob("lua/**/*.lua"), *ROOT.glob("*.md")]:
        name = str(path.relative_to(ROOT))
        why = filetypes.by_name(name, path.stat().st_size) or filetypes.by_content(
            path.read_bytes()
        )
        if why and why != "empty":
            left_out[name] = why
    assert left_out == {}
