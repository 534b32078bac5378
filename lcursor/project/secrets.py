"""Recognize files with secrets by name and by content. Any thread.

The editor has the same globs and formats of keys in lua/lcursor/editor/boundary.lua, which is
generated from this file: files that completion does not read are not indexed either.
"""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Iterable
from pathlib import Path
from typing import Final, NamedTuple

from lcursor.project.globs import translate
from lcursor.project.root import begun_path
from lcursor.storage import json_text

SECRETS: Final = (
    # environment
    "{.env,*.env}",
    "{.env,*.env}.*",
    ".env[-_]*",
    "{.envrc,.flaskenv,.dev.vars}",
    # keys and certificates
    "*.{pem,key,p8,p12,pfx,crt,cer,der,jks,keystore,truststore,ppk,pk8,jwt}",
    "*.pem.{txt,bak,old,orig,enc}",
    "*.{gpg,pgp,asc,kdb,kdbx,agekey,ovpn}",
    "{id_rsa,id_dsa,id_ecdsa,id_ed25519}*",
    "ssh_host_{rsa,dsa,ecdsa,ed25519}_key",
    "{deploy,deployment}{_,-}{key,rsa,ed25519}",
    "{.ssh,.gnupg,.password-store,.pki/nssdb}/*",
    "{key,keys}.json",
    "{apikey,api_key,api-key,apikeys,api_keys,api-keys}.{json,txt,yml,yaml,env,ini}",
    "{wg[0-9],wg[0-9][0-9],wireguard,vpn,openvpn}.conf",
    "openvpn.auth",
    "{wallet.dat,mnemonic.txt,seed_phrase.txt,seed-phrase.txt}",
    "keystore/UTC--*",
    # credentials
    "{credentials,.credentials,credential,creds}",
    "{credentials,.credentials,credential}.*",
    "creds.{json,yml,yaml,toml,ini,txt,csv,xml,conf,properties}",
    "*{_,-}credentials.{json,yml,yaml,toml,ini}",
    "{.smbcredentials,.cifs-credentials,.passwd-s3fs,.supabase/access-token}",
    "{accesskeys,*_accesskeys,rootkey}.csv",
    "{client_secret,service-account,service_account}*.json",
    "{firebase-adminsdk,*-firebase-adminsdk}*.json",
    "{gcp-key,google-services,kaggle,logins,sftp-config,settings.local,local.settings}.json",
    "{application_default_credentials.json,googleservice-info.plist}",
    "{.netrc,_netrc,.pgpass,pgpass.conf,.my.cnf,.npmrc,.pypirc,.git-credentials,.htpasswd,htpasswd}",
    "{.yarnrc.yml,.dockercfg,.vault-token,.terraformrc,terraform.rc,auth.json,.boto,.s3cfg}",
    "{.sentryclirc,sentry.properties,.databrickscfg,.condarc,pip.conf,pip.ini,rclone.conf}",
    "{.msmtprc,.fetchmailrc,.muttrc,.offlineimaprc,.mbsyncrc,.ftpconfig,.openai,.anthropic}",
    "{kubeconfig,kubeconfig{.,[-_]*.}{yml,yaml,json,conf},*[-_.]kubeconfig}",
    "{shadow,gshadow,sudoers,master.passwd,known_hosts,authorized_keys,krb5.keytab}",
    "{shadow-,gshadow-,.xauthority,.iceauthority,.lesshst,fish_history}",
    ".{bash,zsh,sh,ksh,psql,mysql,sqlite,python,node_repl,irb,rediscli,dbshell}_history",
    "*.{keytab,tfstate,tfvars,secret,secrets,token,pwd,passwd}",
    "*.{tfstate.*,tfvars.json}",
    "{secret,secrets}",
    "{secret,secrets}{.*,}.{json,json5,jsonc,yaml,yml,toml,env,ini,conf,cfg,config,properties,props}",
    "{secret,secrets}{.*,}.{txt,xml,plist,csv,tsv,bin,dat,db,sqlite,sqlite3,b64,enc,sops,age,vault}",
    "{secret,secrets}{.*,}.{bak,old,orig,local,sh,bash,zsh,fish,ps1,bat,cmd,h}",
    "*{_,-}{secret,secrets}.{txt,yml,yaml}",
    "*{_,-}{token,password,passwords}.txt",
    "{token,tokens}",
    "{token,tokens}.{json,yml,yaml,toml,ini,txt,xml,conf}",
    "{password,passwords}.{txt,csv,json,yml,yaml,xls,xlsx,md}",
    "{.vault_pass,.vault-pass,vault_pass,vault-pass,.vault_password,.vault-password}",
    "{vault_pass,vault-pass,vault_password,vault-password}.{txt,sh}",
    "{vault-password,vault_password,vault.yml,vault.yaml,ansible_vault.yml,ansible-vault.yml}",
    "secrets/*.{yml,yaml}",
    "{.secrets,secrets.d}/*",
    # settings of programs that usually hold a password
    "appsettings.*.json",
    "connectionstrings.config",
    "config/database.yml",
    "{local_settings,settings_local,localsettings}.{py,php}",
    "wp-config.php{.*,}",
    "{.aws,.azure,.gcp,.gcloud,.irssi,.dbt,.snowsql,.kaggle,.huggingface,keyrings}/*",
    "{.kube,.bundle}/config",
    "{.docker,.mc,.railway}/config.json",
    "{.netlify/state,.vercel/auth,.vscode/sftp}.json",
    ".config/{gh,hub,gcloud,op}/*",
    ".config/hub",
    ".cargo/credentials*",
    ".gem/credentials",
    ".cache/huggingface/token",
    "{.m2/settings,settings-security}.xml",
    ".gradle/gradle.properties",
    # data of browsers and databases
    "{cookies.sqlite,login data,key3.db,key4.db}",
    "{dump,backup}.sql{.*,}",
    "*.{dump,hprof}",
)
"""A glob without a slash matches the file's name, one with a slash the end of its path."""

HARMLESS: Final = (
    ".env.{example,sample,template,dist,defaults,schema}",
    "*.env.{example,sample,template,dist}",
    "*.pub",
)
"""Templates, which have names without values."""


class KeyFormat(NamedTuple):
    """How a format of private keys is recognized."""

    hint: str
    """A text of it that is searched first: that takes a tenth of the pattern's time."""
    pattern: str
    """A regular expression."""
    lua: str
    """The same as a pattern of Lua, in which `{n}` repeats a class."""


def _inside_base64(text: str) -> list[KeyFormat]:
    """Return how a text after others is recognized in base64, at each of the three places."""
    formats = []
    for shift in range(3):
        encoded = b64encode(b" " * shift + text.encode()).decode().rstrip("=")
        first, last = -(-shift * 8 // 6), (shift + len(text)) * 8 // 6
        part = encoded[first:last]
        formats.append(KeyFormat(part, rf"[\w+/]{{8}}{part}", f"[%w+/]{{8}}{part}"))
    return formats


KEY_FORMATS: Final = (
    KeyFormat(
        "PRIVATE KEY",
        r"-----BEGIN [A-Z\d ]*PRIVATE KEY|---- BEGIN SSH2 [A-Z ]*PRIVATE KEY",
        "%-%-%-%- ?%-?BEGIN [%u%d ]*PRIVATE KEY",
    ),
    KeyFormat("PuTTY-User-Key-File-", r"PuTTY-User-Key-File-\d", "PuTTY%-User%-Key%-File%-%d"),
    KeyFormat(
        "AGE-SECRET-KEY-1",
        r"AGE-SECRET-KEY-1[\dA-Z]{8}",
        "AGE%-SECRET%-KEY%-1[%u%d]{8}",
    ),
    # JSON Web Key
    KeyFormat('"kty"', r'"d"\s*:\s*"[\w-]{32}', '"d"%s*:%s*"[%w_%-]{32}'),
    # WireGuard
    KeyFormat(
        "PrivateKey",
        r"PrivateKey\s*=\s*[\w+/]{43}=",
        "PrivateKey%s*=%s*[%w_+/]{43}=",
    ),
    *_inside_base64("PRIVATE KEY"),
)
"""The private keys that are recognized by their text: in PEM, also on one line or in base64, and
those of SSH2, PuTTY, age, JSON Web Keys and WireGuard."""


def _compile(globs: Iterable[str], flags: re.RegexFlag) -> re.Pattern[str]:
    """Return a pattern for whole paths that start with a slash."""
    branches = "|".join(translate(glob, is_vim=True) for glob in globs)
    return re.compile(f".*/(?:{branches})", flags | re.DOTALL)


# Comparing text in lower case takes half the time of a pattern that ignores case.
_SECRET: Final = _compile(map(str.lower, SECRETS), re.UNICODE)
_HARMLESS: Final = _compile(map(str.lower, HARMLESS), re.UNICODE)
_KEYS: Final = tuple(
    (each.hint.encode(), re.compile(each.pattern.encode())) for each in KEY_FORMATS
)
_WIDE_HINTS: Final = tuple(each.hint.encode("utf-16-le")[:-1] for each in KEY_FORMATS)
"""The hints in UTF-16, without the first or last byte, so in either order of bytes."""


def is_secret_path(path: str) -> bool:
    """Return whether a file's name shows that it holds secrets."""
    whole = f"/{path}".lower()
    return _SECRET.fullmatch(whole) is not None and _HARMLESS.fullmatch(whole) is None


def has_private_key(data: bytes) -> bool:
    """Return whether some text, in UTF-8 or UTF-16, contains the start of a private key."""
    if any(hint in data and pattern.search(data) for hint, pattern in _KEYS):
        return True
    is_wide = b"\0" in data and any(hint in data for hint in _WIDE_HINTS)
    return is_wide and has_private_key(data.replace(b"\0", b""))


SECRET_NAME: Final = "its name says that it holds secrets"  # noqa: S105
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
        self._tests = tuple((glob, _compile([glob], re.IGNORECASE)) for glob in known)

    def name_reason(self, path: str) -> str:
        """Return why a file of the project is secret by its name, or by a glob; "" if it is not."""
        return SECRET_NAME if is_secret_path(path) else self.reason(path)

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
        globs = json_text.parse(begun_path(root).read_bytes())[KEY]
    except (OSError, ValueError, KeyError, TypeError):
        globs = []
    known = globs if isinstance(globs, list) else []
    return SecretGlobs(root, (glob for glob in known if isinstance(glob, str)))
