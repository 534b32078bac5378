"""Which files hold secrets, by name and by content. Any thread.

The built-in globs are those of lua/lcursor/privacy.lua, letter by letter (a contract test compares
them): what completion does not read is not indexed either.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final

from lcursor.project.root import begun_path

SECRETS: Final = (
    # environment
    "{.env,*.env}",
    "{.env,*.env}.*",
    ".env[-_]*",
    ".envrc",
    # keys and certificates
    "*.{pem,key,p8,p12,pfx,crt,cer,der,jks,keystore,truststore,ppk,pk8}",
    "*.{gpg,pgp,asc,kdb,kdbx,agekey,ovpn}",
    "{id_rsa,id_dsa,id_ecdsa,id_ed25519}*",
    ".ssh/*",
    ".gnupg/*",
    # credentials
    "{credentials,.credentials,credential}",
    "{credentials,.credentials,credential}.*",
    "*{_,-}credentials.{json,yml,yaml,toml,ini}",
    "{client_secret,service-account,service_account}*.json",
    "{.netrc,_netrc,.pgpass,pgpass.conf,.my.cnf,.npmrc,.pypirc,.git-credentials,.htpasswd}",
    "{.yarnrc.yml,.dockercfg,.vault-token,.terraformrc,terraform.rc,auth.json,.boto,.s3cfg}",
    "{shadow,gshadow,sudoers,master.passwd,known_hosts,authorized_keys,krb5.keytab}",
    "*.{keytab,tfstate,tfvars,secret,secrets,token,pwd,passwd}",
    "*.tfstate.*",
    "{secret,secrets}",
    "{secret,secrets}{.*,}.{json,json5,jsonc,yaml,yml,toml,env,ini,conf,cfg,config,properties,props}",
    "{secret,secrets}{.*,}.{txt,xml,plist,csv,tsv,bin,dat,db,sqlite,sqlite3,b64,enc,sops,age,vault}",
    "{secret,secrets}{.*,}.{bak,old,orig,local,sh,bash,zsh,fish,ps1,bat,cmd,h}",
    "{token,tokens}",
    "{token,tokens}.{json,yml,yaml,toml,ini,txt,xml,conf}",
    "appsettings.*.json",
    "{.secrets,secrets.d}/*",
    "{.aws,.azure,.gcp,.gcloud}/*",
    ".kube/config",
    ".docker/config.json",
    ".config/{gh,hub,gcloud}/*",
    ".cargo/credentials*",
    ".gem/credentials",
    "wp-config.php",
)
"""Without a slash they are compared with the file's name, else with the end of its path."""

HARMLESS: Final = (
    ".env.{example,sample,template,dist,defaults,schema}",
    "*.env.{example,sample,template,dist}",
    "*.pub",
)
"""Templates hold names without values."""


def pattern(globs: Sequence[str]) -> re.Pattern[str]:
    """Return what matches a whole path that begins with a slash, as Vim's glob2regpat would."""
    return re.compile("|".join(f".*/{_regex(glob)}" for glob in globs), re.IGNORECASE | re.DOTALL)


def _regex(glob: str) -> str:
    out = []
    depth = at = 0
    while at < len(glob):
        char = glob[at]
        close = glob.find("]", at + 1) if char == "[" else -1
        if close > 0:
            out.append(glob[at : close + 1])
            at = close
        elif char == "*":
            out.append(".*")
        elif char == "?":
            out.append(".")
        elif char == "{":
            out.append("(?:")
            depth += 1
        elif char == "}" and depth:
            out.append(")")
            depth -= 1
        elif char == "," and depth:
            out.append("|")
        else:
            out.append(re.escape(char))
        at += 1
    return "".join(out)


_SECRET: Final = pattern(SECRETS)
_HARMLESS: Final = pattern(HARMLESS)
_KEY: Final = re.compile(
    rb"-----BEGIN [A-Z\d ]*PRIVATE KEY|PuTTY-User-Key-File-\d|AGE-SECRET-KEY-1[\dA-Z]{8}"
)
_HINTS: Final = (b"PRIVATE KEY", b"PuTTY-User", b"AGE-SECRET")
"""A plain search comes first: it takes a tenth of the pattern's time."""


def is_secret_path(path: str) -> bool:
    """Return whether a file's name says that it holds secrets."""
    whole = path if path.startswith("/") else f"/{path}"
    return _SECRET.fullmatch(whole) is not None and _HARMLESS.fullmatch(whole) is None


def has_private_key(data: bytes) -> bool:
    """Return whether the head of a private key stands in a file."""
    return any(hint in data for hint in _HINTS) and _KEY.search(data) is not None


KEY = "secrets"
"""In the file that says that a project was begun."""
REASON = "a pattern of completion.secrets names it"
"""Followed by a colon and the pattern."""


class SecretGlobs:
    """The user's globs of one project.

    What any editor has said of a project holds, so that no second editor with other settings lets a
    file in; only making the index anew forgets it. Any thread: a change is one assignment.

    Args:
        root: of the project; globs are compared with whole paths, as in the editor.
        globs: of `completion.secrets`.
    """

    def __init__(self, root: Path, globs: Iterable[str] = ()) -> None:
        self._root = str(root).rstrip("/")
        self._tests: tuple[tuple[str, re.Pattern[str]], ...] = ()
        self.replace(globs)

    @property
    def globs(self) -> tuple[str, ...]:
        """All that hold, in order."""
        return tuple(glob for glob, _ in self._tests)

    def add(self, globs: Iterable[str]) -> bool:
        """Let some hold as well; return whether there was a new one."""
        before = self.globs
        self.replace([*before, *globs])
        return self.globs != before

    def replace(self, globs: Iterable[str]) -> None:
        """Let these hold, and no others."""
        known = sorted({glob for glob in globs if glob})
        self._tests = tuple((glob, _test(glob)) for glob in known)

    def reason(self, path: str) -> str:
        """Return why a file is left out, in words; "" if no glob names it.

        Args:
            path: relative to the project's root.
        """
        tests = self._tests
        if tests:
            whole = f"{self._root}/{path}"
            for glob, test in tests:
                if test.fullmatch(whole):
                    return f"{REASON}: {glob}"
        return ""


def from_begun(root: Path, begun: dict[str, Any]) -> SecretGlobs:
    """Return what the file that began a project has kept; nothing where it is broken."""
    globs = begun.get(KEY)
    kept = [glob for glob in globs if isinstance(glob, str)] if isinstance(globs, list) else []
    return SecretGlobs(root, kept)


def load(root: Path) -> SecretGlobs:
    """Return what was kept for a project, also where no worker runs."""
    try:
        begun = json.loads(begun_path(root).read_bytes())
    except (OSError, ValueError):
        begun = {}
    return from_begun(root, begun if isinstance(begun, dict) else {})


def _test(glob: str) -> re.Pattern[str]:
    """Return what a glob means; one that is none means itself."""
    try:
        return pattern([glob])
    except re.error:
        return re.compile(f".*/{re.escape(glob)}", re.IGNORECASE | re.DOTALL)
