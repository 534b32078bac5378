from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from lcursor.catalog.hardware import GIB, Device
from lcursor.config import ChatConfig
from lcursor.errors import ServerEnded
from lcursor.llm import fit, launch, llama_server
from lcursor.llm.fit import MemoryBudget, ModelSize, ServerPlan
from lcursor.llm.llama_server import Engine
from lcursor.process.supervise import error_line
from tests.unit.llm.serving import Machine, machine_of


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


def command(placement: str = "on the GPU", *, idle_s: int = 900) -> str:
    engine = Engine("llama-server", "/bin/llama-server")
    room = MemoryBudget(placement, 24 * GIB, 24 * GIB)  # type: ignore[arg-type]
    plan = ServerPlan(ModelSize("toy", Path("/m/toy.gguf"), GIB, 1024, 32768), room, 8192, 512)
    words = llama_server.command(engine, plan, "/run/x.sock", Path("/data/slots"), idle_s)
    return " ".join(words[1:])


def test_the_command_line_of_the_server() -> None:
    assert command() == (
        "--model /m/toy.gguf --alias toy --host /run/x.sock --ctx-size 8192 --parallel 9 "
        "--kv-unified --batch-size 512 --ubatch-size 512 --flash-attn on --cache-type-k q8_0 "
        "--cache-type-v q8_0 --fit-target 384 --jinja --no-context-shift --cache-ram 512 "
        "--slot-save-path /data/slots/ --spec-type ngram-simple,ngram-map-k "
        "--spec-ngram-simple-size-n 16 --spec-ngram-simple-size-m 48 "
        "--spec-ngram-map-k-size-n 4 --spec-ngram-map-k-size-m 8 --sleep-idle-seconds 900 "
        "--slots --no-ui --offline --log-colors off"
    )


@pytest.mark.parametrize(
    ("change", "absent"),
    [
        ({"placement": "on the CPU"}, ["--flash-attn", "--cache-type-k", "--fit-target"]),
        ({"idle_s": 0}, ["--sleep-idle-seconds"]),
    ],
)
def test_options_that_are_not_wanted_are_left_out(
    change: dict[str, object], absent: list[str]
) -> None:
    made = command(**change).split()  # type: ignore[arg-type]
    assert not set(absent) & set(made)


def test_memory_for_completion_stays_free_on_the_first_of_several_gpus() -> None:
    card = Device("A card", 8 * GIB, 8 * GIB)
    room = MemoryBudget("on the GPU", 16 * GIB, 16 * GIB, 2 * GIB)
    plan = ServerPlan(ModelSize("toy", Path("/m/toy.gguf"), GIB, 1024, 32768), room, 8192, 512)
    for count, expected in ((1, "384"), (2, "2432,384")):
        engine = Engine("llama-server", "/bin/llama-server", (card,) * count)
        words = llama_server.command(engine, plan, "/run/x.sock", Path("/data/slots"), 0)
        assert words[words.index("--fit-target") + 1] == expected


def test_a_server_has_as_many_threads_as_it_may_use_cores(cores: list[int]) -> None:
    assert "--threads" not in command()
    del cores[3:]
    assert "--threads 3 " in command()


@pytest.mark.parametrize("batch_tokens", fit.BATCH_TOKENS.values())
def test_the_drafts_of_all_slots_fit_into_a_batch(batch_tokens: int) -> None:
    for each in llama_server.speculations(batch_tokens):
        assert llama_server.PARALLEL * (each.draft_tokens + 1) <= batch_tokens
        assert each.draft_tokens >= each.match_tokens, "the server would draft nothing"


def test_drafts_are_shorter_in_the_smaller_batches_of_a_cpu() -> None:
    made = command("on the CPU")
    assert "--batch-size 192 --ubatch-size 192" in made
    assert "--spec-ngram-simple-size-m 20 " in made


@pytest.mark.parametrize("version", ["9600", "11549", "0", "1"])
def test_supported_builds(machine: Machine, version: str) -> None:
    machine.install()
    machine.set(VERSION=version)
    assert llama_server.inspect(str(machine.program)).kind == "llama-server"


@pytest.mark.parametrize("version", ["2", "9599"])
def test_builds_that_are_too_old(machine: Machine, version: str) -> None:
    machine.install()
    machine.set(VERSION=version)
    with pytest.raises(ServerEnded, match=f"too old: it is build {version}, and 9600"):
        llama_server.inspect(str(machine.program))


CARDS = (
    "CUDA0: NVIDIA A100-PCIE-40GB (40442 MiB, 39999 MiB free)",
    "CUDA1: NVIDIA A100-PCIE-40GB (40442 MiB, 100 MiB free)",
)
SHARING = (
    "Vulkan0: Intel(R) Graphics (RPL-P) (15721 MiB, 14000 MiB free)",
    "Vulkan1: AMD (RADV NAVI31) (24560 MiB, 100 MiB free)",
)


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        (CARDS, [40442, 40442]),
        (SHARING, [24560]),
        (SHARING[:1], [15721]),
        ((), []),
    ],
)
def test_a_program_is_asked_for_its_devices(
    rows: Sequence[str], expected: list[int], machine: Machine
) -> None:
    machine.install()
    machine.set(DEVICES="\n  ".join(["Available devices:", *rows]))
    assert llama_server.programs() == [str(machine.program)]
    found = llama_server.inspect(str(machine.program)).devices
    assert [device.total_bytes >> 20 for device in found] == expected
    if rows == CARDS:
        assert found[1] == Device("NVIDIA A100-PCIE-40GB", 40442 << 20, 100 << 20)


def test_the_engine_of_completion_may_have_a_server(
    machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine.install()
    program = tmp_path / "packages/llama_cpp/lib/llama-server"
    program.parent.mkdir(parents=True)
    program.write_bytes(machine.program.read_bytes())
    (tmp_path / "packages/llama_cpp/__init__.py").write_text("raise ImportError\n")
    monkeypatch.syspath_prepend(tmp_path / "packages")
    monkeypatch.delitem(sys.modules, "llama_cpp", raising=False)
    assert llama_server.programs() == [str(machine.program)]  # it cannot be executed
    program.chmod(0o755)
    assert llama_server.programs() == [str(machine.program), str(program)]


def test_a_server_that_uses_a_gpu_is_preferred(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    gpu = (Device("AMD", 24 << 30, 24 << 30),)
    engines: dict[str, Engine | ServerEnded] = {
        "/broken": ServerEnded("it does not run", ""),
        "/cpu": Engine("llama-server", "/cpu"),
        "/gpu": Engine("llama-server", "/gpu", gpu),
    }

    def inspect(program: str) -> Engine:
        found = engines[program]
        if isinstance(found, ServerEnded):
            raise found
        return found

    monkeypatch.setattr(llama_server, "inspect", inspect)
    for listed, chosen in ((["/broken", "/cpu", "/gpu"], "/gpu"), (["/broken", "/cpu"], "/cpu")):
        monkeypatch.setattr(llama_server, "programs", lambda listed=listed: listed)
        assert launch.choose_engine(ChatConfig(), print).program == chosen


@pytest.mark.parametrize("text", ["#!/bin/sh\nexit 1\n", "#!/nonexistent\n", "\x7fELF"])
def test_a_program_that_does_not_run(machine: Machine, text: str) -> None:
    machine.install(text)
    with pytest.raises(ServerEnded, match="does not run here"):
        llama_server.inspect(str(machine.program))


def test_the_package_is_asked_without_importing_it() -> None:
    import sys

    was_there = "xllamacpp" in sys.modules  # of another test
    found = llama_server.inspect_package()
    assert found.kind == "xllamacpp"
    assert all(isinstance(device, Device) for device in found.devices)
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
    assert error_line(log) == words


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
    assert (launch.NO_MEMORY.search(line) is not None) == is_memory
