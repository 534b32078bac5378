"""What is not indexed, and why, in words: by name, by size, by content. Pure; any thread.

What git ignores and which folders are left out is files.py's.
"""

from __future__ import annotations

import re
from typing import Final

from lcursor.project import secrets

MOST_BYTES: Final = 1 << 20
MOST_DATA_BYTES: Final = 256 << 10
MOST_AVERAGE_CHARS: Final = 150
LONG_LINE_BYTES: Final = 1000
MOST_LONG_SHARE: Final = 0.5
PROSE_BLANKS: Final = 0.12
"""Share of blanks: a paragraph on one line has a sixth, minified code a thirtieth."""
HEAD_BYTES: Final = 4096


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


BINARY: Final = _words(
    # images, sound, film
    "png jpg jpeg gif bmp ico icns webp avif tif tiff psd ai eps xcf mp3 wav ogg flac m4a mp4 mov "
    "avi mkv webm heic "
    # documents and fonts
    "pdf doc docx xls xlsx ppt pptx odt ods odp epub ttf otf woff woff2 eot "
    # archives
    "zip tar gz tgz bz2 xz zst lz4 7z rar jar war ear whl egg deb rpm apk dmg iso cab msi crx "
    # compiled
    "o a so dylib dll exe lib obj pyc pyo pyd class wasm elf bin dat hex ko pdb nib beam hi cmi "
    "cmo cmx rlib rmeta dex "
    # data and models
    "db sqlite sqlite3 mdb parquet arrow feather npy npz pkl pickle h5 hdf5 onnx gguf safetensors "
    "pt pth ckpt tflite pb usearch mo idx pack spl sav"
)
DATA: Final = _words("csv tsv jsonl ndjson json geojson xml svg ipynb sql yaml yml po pot txt log")
LOCKS: Final = _words(
    "package-lock.json npm-shrinkwrap.json pnpm-lock.yaml go.sum bun.lockb gradle.lockfile "
    "Package.resolved .terraform.lock.hcl deno.lock"
)

_MINIFIED: Final = re.compile(r"[.\-_]min\.(?:js|mjs|css|html|json)$|\.(?:bundle|chunk)\.js$", re.I)
_GENERATED: Final = re.compile(
    rb"^\W{0,8}\s*(?:Code generated .{1,200}DO NOT EDIT|.{0,40}@generated\b)", re.MULTILINE
)
_NO_ASCII: Final = bytes(range(128, 256))
_ENCODED: Final = (
    (b"\xff\xfe\x00\x00", "utf-32-le"),
    (b"\x00\x00\xfe\xff", "utf-32-be"),
    (b"\xff\xfe", "utf-16-le"),
    (b"\xfe\xff", "utf-16-be"),
)


def by_name(path: str, size_bytes: int) -> str:
    """Return why a file is not read, as far as its name and its size tell; "" if it is.

    Args:
        path: relative to the project's root, or absolute.
        size_bytes: of the file.
    """
    if secrets.is_secret_path(path):
        return "its name says that it holds secrets"
    name = path.rpartition("/")[2]
    extension = name.rpartition(".")[2].lower() if "." in name else ""
    if extension in BINARY:
        return f"binary (.{extension})"
    if name in LOCKS or extension == "lock":
        return "a lock file"
    if extension == "map" or _MINIFIED.search(name):
        return "minified, or a map of something minified"
    if size_bytes > MOST_BYTES:
        return "larger than 1 MB"
    if extension in DATA and size_bytes > MOST_DATA_BYTES:
        return "data larger than 256 kB"
    return ""


def by_content(data: bytes) -> str:
    """Return why a file is not indexed, as far as its content tells; "" if it is.

    Args:
        data: all of it.
    """
    if not data:
        return "empty"
    if any(data.startswith(mark) for mark, _ in _ENCODED):
        data = decode(data).encode()
    if b"\0" in data:
        return "binary"
    if secrets.has_private_key(data):
        return "a private key in it"
    if _GENERATED.search(data[:HEAD_BYTES]):
        return "generated, as it says itself"
    if len(data) < LONG_LINE_BYTES:
        return ""
    lines = data.split(b"\n")
    average = len(data) // len(lines)
    if average > MOST_AVERAGE_CHARS and not _is_prose(data):
        return f"generated: average line of {average} characters"
    long = b"".join(line for line in lines if len(line) > LONG_LINE_BYTES)
    if len(long) > MOST_LONG_SHARE * len(data) and not _is_prose(long):
        return f"generated: {len(long) * 100 // len(data)} % of it in lines of over 1,000 bytes"
    return ""


def _is_prose(data: bytes) -> bool:
    """Return whether there are blanks between words, as in no minified file, or foreign ones."""
    ascii_bytes = len(data.translate(None, _NO_ASCII))
    return data.count(b" ") > PROSE_BLANKS * len(data) or ascii_bytes < 0.8 * len(data)


def decode(data: bytes) -> str:
    """Return a file's text: UTF-8, UTF-16 or UTF-32 with its mark, else Latin-1. Never fails."""
    for mark, encoding in _ENCODED:
        if data.startswith(mark):
            return data[len(mark) :].decode(encoding, "replace")
    if data.startswith(b"\xef\xbb\xbf"):
        data = data[3:]
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return data.decode("latin-1")
