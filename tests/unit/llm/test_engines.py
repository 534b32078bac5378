from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from lcursor.catalog.hardware import GIB
from lcursor.errors import ServerEnded
from lcursor.llm import engines, fit, guess, launch
from lcursor.llm.engines import Address, Engine
from lcursor.llm.fit import Device, Plan, Room, Weights
from tests.unit.llm.serving import BARE_HELP, NEW_HELP, OLD_HELP, Machine, machine_of

SOCKET = Address(socket="/run/x.sock")
PORT = Address(port=4711, key_path="/home/key")


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Iterator[Machine]:
    with machine_of(monkeypatch) as made:
        yield made


@pytest.fixture(autouse=True)
def cores(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """All cores of the machine, unless a test takes some away."""
    ours = list(range(8))
    monkeypatch.setattr("os.cpu_count", lambda: 8)
    monkeypatch.setattr("os.sched_getaffinity", lambda _: ours, raising=False)
    return ours


def arguments(text: str, place: str = "on the GPU", where: Address = SOCKET, **more: int) -> str:
    engine = Engine("llama-server", "/bin/llama-server", text, ())
    room = Room(place, 24 * GIB, 24 * GIB)  # type: ignore[arg-type]
    plan = Plan(Weights("toy", Path("/m/toy.gguf"), GIB, 1024, 32768), room, 8192, 512)
    speculate, idle_s = bool(more.get("speculate", 1)), more.get("idle_s", 900)
    made = engines.arguments(engine, plan, where, Path("/data/slots"), speculate, idle_s)
    return " ".join(made[1:])


def test_a_new_program_gets_all_that_it_knows() -> None:
    assert arguments(NEW_HELP) == (
        "--model /m/toy.gguf --alias toy --host /run/x.sock --ctx-size 8192 --parallel 1 "
        "--batch-size 512 --ubatch-size 512 --flash-attn on --cache-type-k q8_0 "
        "--cache-type-v q8_0 --jinja --no-context-shift --cache-ram 512 "
        "--slot-save-path /data/slots/ --spec-type ngram-simple,ngram-map-k "
        "--spec-ngram-simple-size-n 16 --spec-ngram-simple-size-m 48 "
        "--spec-ngram-map-k-size-n 4 --spec-ngram-map-k-size-m 8 --sleep-idle-seconds 900 "
        "--slots --no-ui --offline --log-colors off"
    )


def test_an_old_program_gets_nothing_that_it_does_not_know() -> None:
    assert arguments(OLD_HELP, where=PORT) == (
        "-m /m/toy.gguf --host 127.0.0.1 --port 4711 --api-key-file /home/key -c 8192 -np 1 "
        "--flash-attn --cache-type-k q8_0 --n-gpu-layers 999"
    )


@pytest.mark.parametrize(
    ("change", "absent"),
    [
        ({"place": "on the CPU"}, ["--flash-attn", "--cache-type-k", "--n-gpu-layers"]),
        ({"speculate": 0}, ["--spec-type"]),
        ({"idle_s": 0}, ["--sleep-idle-seconds"]),
    ],
)
def test_what_is_not_wanted_is_not_said(change: dict[str, object], absent: list[str]) -> None:
    made = arguments(NEW_HELP, **change).split()  # type: ignore[arg-type]
    assert not set(absent) & set(made)


@pytest.mark.parametrize(
    ("known", "said"),
    [
        ("TYPE[,TYPE]   ngram-simple, ngram-mod", "--spec-type ngram-simple "),
        ("TYPE          ngram-simple, ngram-map-k, ngram-mod", "--spec-type ngram-simple "),
        ("TYPE          ngram-mod, ngram-cache", "--spec-type ngram-mod --sleep"),
    ],
)
def test_a_program_that_takes_one_way_of_guessing(known: str, said: str) -> None:
    kinds = "TYPE[,TYPE]                 one of none, ngram-simple, ngram-map-k, ngram-mod"
    assert said in arguments(NEW_HELP.replace(kinds, known))


def test_an_older_program_has_other_names_for_the_sizes() -> None:
    old = NEW_HELP.replace("TYPE[,TYPE]", "TYPE").replace("--spec-ngram-simple-", "--spec-ngram-")
    assert "--spec-type ngram-simple --spec-ngram-size-n 6 --spec-ngram-size-m 24" in arguments(old)


def test_a_kind_of_guessing_that_it_does_not_know_is_not_asked_for() -> None:
    assert "--spec-type" not in arguments(NEW_HELP.replace("ngram-", "draft-"))


def test_a_server_has_as_many_threads_as_it_may_use_cores(cores: list[int]) -> None:
    assert "--threads" not in arguments(NEW_HELP)
    del cores[3:]
    assert "--threads 3 " in arguments(NEW_HELP)


def test_guesses_fit_into_a_batch() -> None:
    assert max(each.room_tokens for each in guess.GUESSES) <= min(fit.BATCH_TOKENS.values())
    kinds = "TYPE[,TYPE]                 one of none, ngram-simple, ngram-map-k, ngram-mod"
    for known, tokens in ((kinds, 64), ("TYPE  ngram-mod", 128)):
        text = NEW_HELP.replace(kinds, known)
        made = arguments(text, "on the CPU")
        assert f"--batch-size {tokens} --ubatch-size {tokens}" in made


@pytest.mark.parametrize(
    ("flag", "is_known"),
    [("--ctx-size", True), ("-c", True), ("--ctx", False), ("--no-ui", True), ("--webui-x", False)],
)
def test_a_flag_is_known_by_its_whole_name(flag: str, is_known: bool) -> None:
    assert engines.knows(NEW_HELP, flag) == is_known


@pytest.mark.parametrize(
    ("text", "socket", "key"),
    [(NEW_HELP, True, True), (OLD_HELP, False, True), (BARE_HELP, False, False)],
)
def test_whether_others_could_reach_it(text: str, socket: bool, key: bool) -> None:
    engine = Engine("llama-server", "x", text, ())
    assert (engines.can_socket(engine), engines.can_key(engine)) == (socket, key)


def test_a_program_is_asked_what_it_runs_on(machine: Machine) -> None:
    machine.install()
    machine.set(
        DEVICES="Available devices:\n  CUDA0: NVIDIA A100-PCIE-40GB (40442 MiB, 39999 MiB free)\n"
        "  Vulkan0: AMD (RADV NAVI31) (24560 MiB, 100 MiB free)"
    )
    assert engines.programs() == [str(machine.program)]
    found = engines.look(str(machine.program))
    assert found.devices == (
        Device("NVIDIA A100-PCIE-40GB", 40442 << 20, 39999 << 20),
        Device("AMD (RADV NAVI31)", 24560 << 20, 100 << 20),
    )
    assert found.help.strip() == NEW_HELP.strip()


@pytest.mark.parametrize("text", ["#!/bin/sh\nexit 1\n", "#!/nonexistent\n", "\x7fELF"])
def test_a_program_that_does_not_run(machine: Machine, text: str) -> None:
    machine.install(text)
    with pytest.raises(ServerEnded, match="does not run here"):
        engines.look(str(machine.program))


def test_the_package_is_asked_without_importing_it() -> None:
    import sys

    was_there = "xllamacpp" in sys.modules  # of another test
    found = engines.package()
    assert found.kind == "xllamacpp"
    assert all(isinstance(device, fit.Device) for device in found.devices)
    assert ("xllamacpp" in sys.modules) == was_there


@pytest.mark.parametrize(
    ("log", "words"),
    [
        (
            "--- start\n0.00.1 I srv init: ok\n0.00.4 E llama_model_load: error loading model: x\n"
            "0.00.5 E main: exiting due to model loading error\n",
            "llama_model_load: error loading model: x",
        ),
        ("a\ncouldn't load: failed\nbye\n", "couldn't load: failed"),
        ("a\nbye\n\n", "bye"),
        ("", ""),
    ],
)
def test_the_line_of_a_log_that_says_why(log: str, words: str) -> None:
    assert launch.last_words(log) == words


@pytest.mark.parametrize(
    ("line", "is_memory"),
    [
        ("ggml_cuda: cudaMalloc failed: out of memory", True),
        ("ggml_backend_cpu_buffer_type_alloc_buffer: failed to allocate buffer of size 1", True),
        ("ggml_vulkan: Device memory allocation of size 9 failed.", True),
        ("terminate called after throwing an instance of 'std::bad_alloc'", True),
        ("ggml_cuda_host_malloc: failed to allocate 512 MiB of pinned memory", False),
        ("error loading model: unknown architecture", False),
    ],
)
def test_the_words_of_a_full_memory(line: str, is_memory: bool) -> None:
    assert (launch.NO_ROOM.search(line) is not None) == is_memory
