"""Recognize files with secrets by name and by content. Any thread.

The built-in globs equal those of lua/lcursor/privacy.lua (a contract test compares them), so that
files that completion does not read are not indexed either.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from lcursor.project.globs import translate
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
"""A glob without a slash matches the file's name, one with a slash the end of its path."""

HARMLESS: Final = (
    ".env.{example,sample,template,dist,defaults,schema}",
    "*.env.{example,sample,template,dist}",
    "*.pub",
)
"""Templates, which have names without values."""


def _compile(globs: Iterable[str]) -> re.Pattern[str]:
    """Return a pattern for whole paths that start with a slash."""
    regexes = (f".*/(?:{translate(glob, is_vim=True)})" for glob in globs)
    return re.compile("|".join(regexes), re.IGNORECASE | re.DOTALL)


_SECRET: Final = _compile(SECRETS)
_HARMLESS: Final = _compile(HARMLESS)
_KEY: Final = re.compile(
    rb"-----BEGIN [A-Z\d ]*PRIVATE KEY|PuTTY-User-Key-File-\d|AGE-SECRET-KEY-1[\dA-Z]{8}"
)
_HINTS: Final = (b"PRIVATE KEY", b"PuTTY-User", b"AGE-SECRET")
"""Searched first: that takes a tenth of the pattern's time."""


def is_secret_path(path: str) -> bool:
    """Return whether a file's name shows that it holds secrets."""
    whole = path if path.startswith("/") else f"/{path}"
    return _SECRET.fullmatch(whole) is not None and _HARMLESS.fullmatch(whole) is None


def has_private_key(data: bytes) -> bool:
    """Return whether some text contains the start of a private key."""
    return any(hint in data for hint in _HINTS) and _KEY.search(data) is not None


KEY = "secrets"
"""Key of the globs in the stored data of a project."""
REASON = "a pattern of privacy.exclude names it"
"""Followed by a colon and the pattern."""


class SecretGlobs:
    """The user's globs for one project.

    The globs of all its editors apply, so that an editor with other settings cannot expose a file;
    only rebuilding the index removes them. Any thread: a change is one assignment.

    Args:
        root: of the project; globs match whole paths, as in the editor.
    """

    def __init__(self, root: Path, globs: Iterable[str] = ()) -> None:
        self._root = str(root).rstrip("/")
        self._tests: tuple[tuple[str, re.Pattern[str]], ...] = ()
        self.replace(globs)

    @property
    def globs(self) -> tuple[str, ...]:
        """All globs, in order."""
        return tuple(glob for glob, _ in self._tests)

    def add(self, globs: Iterable[str]) -> bool:
        """Add globs; return whether any is new."""
        before = self.globs
        self.replace([*before, *globs])
        return self.globs != before

    def replace(self, globs: Iterable[str]) -> None:
        """Replace all globs."""
        known = sorted({glob for glob in globs if glob})
        self._tests = tuple((glob, _compile([glob])) for glob in known)

    def reason(self, path: str) -> str:
        """Return why a file of the project is left out; "" if no glob matches it."""
        tests = self._tests
        if tests:
            whole = f"{self._root}/{path}"
            for glob, test in tests:
                if test.fullmatch(whole):
                    return f"{REASON}: {glob}"
        return ""


def load(root: Path) -> SecretGlobs:
    """Return the stored globs of a project; none if the file is damaged."""
    try:
        globs = json.loads(begun_path(root).read_bytes())[KEY]
    except (OSError, ValueError, KeyError, TypeError):
        globs = []
    known = globs if isinstance(globs, list) else []
    return SecretGlobs(root, (glob for glob in known if isinstance(glob, str)))
