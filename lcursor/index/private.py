"""Which files hold secrets, by name and by content. Pure; any thread.

The globs are those of lua/lcursor/privacy.lua, letter by letter (a contract test compares them):
what completion does not read is not indexed either.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

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
