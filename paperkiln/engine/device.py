"""Where a model runs: the one place that knows numpy threads, torch and its devices.

`pick_engine("cpu")` is the numpy tape; `cpu-fast` the tape with fused C loops; `torch-cpu`,
`cuda` and `mps` are torch. All offer the same few verbs to the trainer.
"""

from __future__ import annotations

import ctypes
import importlib.util
import os
import platform
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from types import ModuleType
from typing import Any, TypeVar, get_args

import numpy as np

from paperkiln.engine.parameters import Parameters
from paperkiln.errors import PaperkilnError
from paperkiln.spec import Device

Item, Result = TypeVar("Item"), TypeVar("Result")
# loss_of(tensors by name, shard number) -> the shard's part of the loss, a scalar tensor
LossOf = Callable[[dict[str, Any], int], Any]

DEVICES = get_args(Device)


def pick_engine(device: str) -> TapeEngine | TorchEngine:
    """Return the engine for `device`.

    Raises PaperkilnError when the device's optional part is missing, with the mend.
    """
    if device not in DEVICES:
        raise PaperkilnError(f"device {device!r}: known are {', '.join(DEVICES)}")
    if reason := unavailable(device):
        raise PaperkilnError(f"device {device}: {reason}")
    if device == "cpu":
        from paperkiln.engine import ops

        return TapeEngine(device, ops, "the numpy tape")
    if device == "cpu-fast":
        from paperkiln.engine import fast_ops, kernels

        kernels.load()
        return TapeEngine(device, fast_ops, "the numpy tape with compiled kernels")
    import torch

    from paperkiln.engine import torch_ops

    on = device.removeprefix("torch-")
    return TorchEngine(device, torch_ops, on, f"torch {torch.__version__}, float32")


class TapeEngine:
    """The numpy tape: the shards of a batch run side by side, one BLAS thread each.

    numpy releases Python's global lock inside its loops and GEMMs, so two shards keep two cores
    busy through the elementwise passes as well, which BLAS's own threads would not. The sums
    over shards run in shard order, whatever the number of threads: results do not depend on it.
    """

    def __init__(self, device: str, F: ModuleType, reason: str) -> None:
        self.device, self.F, self.reason = device, F, reason
        self.workers = os.cpu_count() or 1
        # The trainer reports what is not finite, once: numpy's warnings would only repeat it.
        self._pool = ThreadPoolExecutor(
            self.workers, "shard", lambda: np.seterr(over="ignore", invalid="ignore")
        )
        _one_blas_thread()
        _keep_freed_memory()

    def parameters(self, arrays: dict[str, np.ndarray], decayed: Iterable[str] = ()) -> Parameters:
        """Copy `arrays` into one flat buffer."""
        return Parameters(arrays, lambda flat: flat, decayed)

    def leaves(self, parameters: Parameters) -> dict[str, Any]:
        """Return tensors that view the parameters and collect their own gradients."""
        return {n: self.F.tensor(parameters.view(n), True) for n in parameters.shapes}

    def n_shards(self, wanted: int, n_sequences: int) -> int:
        """Return into how many parts a batch is cut: none may be empty."""
        return min(wanted, n_sequences)

    def map(self, fn: Callable[[Item], Result], items: Sequence[Item]) -> list[Result]:
        """Return `[fn(item) for item in items]`, run on the cores side by side."""
        if len(items) == 1:
            return [fn(items[0])]
        return list(self._pool.map(fn, items))

    def value_and_grad(
        self, parameters: Parameters, loss_of: LossOf, n_shards: int = 1, accumulate: bool = False
    ) -> float:
        """Return the summed loss of the shards, leaving (or adding) its gradient in `.grad`."""
        shards = [self.leaves(parameters) for _ in range(n_shards)]

        def run(shard: int) -> float:
            loss = loss_of(shards[shard], shard)
            loss.backward()
            return loss.item()

        losses = self.map(run, range(n_shards))

        def combine(name: str) -> None:
            grads = [s[name].grad for s in shards if s[name].grad is not None]
            total = parameters.grad_view(name)
            if not accumulate:
                if len(grads) >= 2:
                    np.add(grads.pop(0), grads.pop(0), out=total)
                elif grads:
                    total[...] = grads.pop(0)
                else:
                    total[...] = 0.0
            for grad in grads:
                total += grad

        self.map(combine, list(parameters.shapes))
        return sum(losses)

    def arrays(self, flat: np.ndarray) -> np.ndarray:
        """Return a flat buffer as a numpy array (no copy)."""
        return flat

    def from_numpy(self, array: np.ndarray) -> np.ndarray:
        """Return what can be assigned into a buffer of this engine."""
        return array


class TorchEngine:
    """Torch on one device; autograd and threads are its own."""

    workers = 1

    def __init__(self, device: str, F: ModuleType, torch_device: str, reason: str) -> None:
        self.device, self.F, self.reason = device, F, reason
        self._torch_device = torch_device
        F.place_on(torch_device)

    def parameters(self, arrays: dict[str, np.ndarray], decayed: Iterable[str] = ()) -> Parameters:
        """Copy `arrays` into one flat buffer on the device."""
        import torch

        place = lambda flat: torch.from_numpy(flat.copy()).to(self._torch_device)  # noqa: E731
        return Parameters(arrays, place, decayed)

    def leaves(self, parameters: Parameters) -> dict[str, Any]:
        """Return tensors that view the parameters and whose gradients view `parameters.grad`."""
        leaves = {}
        for name in parameters.shapes:
            leaf = parameters.view(name).detach().requires_grad_()
            leaf.grad = parameters.grad_view(name)
            leaves[name] = leaf
        return leaves

    def n_shards(self, wanted: int, n_sequences: int) -> int:
        """Return 1: torch has its own threads, and a GPU wants the batch whole."""
        return 1

    def map(self, fn: Callable[[Item], Result], items: Sequence[Item]) -> list[Result]:
        """Return `[fn(item) for item in items]`, one after the other."""
        return [fn(item) for item in items]

    def value_and_grad(
        self, parameters: Parameters, loss_of: LossOf, n_shards: int = 1, accumulate: bool = False
    ) -> float:
        """Return the summed loss of the shards, leaving (or adding) its gradient in `.grad`."""
        if not accumulate:
            parameters.grad.zero_()
        leaves = self.leaves(parameters)
        total = 0.0
        for shard in range(n_shards):
            loss = loss_of(leaves, shard)
            loss.backward()
            total += loss.item()
        return total

    def arrays(self, flat: Any) -> np.ndarray:
        """Return a flat buffer as a numpy array (a copy from the device)."""
        return flat.detach().cpu().numpy()

    def from_numpy(self, array: np.ndarray) -> Any:
        """Return what can be assigned into a buffer of this engine."""
        import torch

        return torch.from_numpy(array)


def unavailable(device: str) -> str | None:
    """Return why `device` cannot be used here, with the mend, or None when it can."""
    if device == "cpu":
        return None
    if device == "cpu-fast":
        from paperkiln.engine import kernels

        return kernels.unavailable()
    if importlib.util.find_spec("torch") is None:
        return "torch is not installed; pip install 'paperkiln[torch]', or train with --device cpu"
    import torch

    usable = {
        "torch-cpu": True,
        "cuda": torch.cuda.is_available(),
        "mps": torch.backends.mps.is_available(),
    }
    if usable[device]:
        return None
    return f"torch {torch.__version__} finds none here; use cpu or torch-cpu"


def _one_blas_thread() -> None:
    """Hold numpy's BLAS to one thread: the shards are the parallelism, and sums stay in order."""
    from threadpoolctl import threadpool_limits

    threadpool_limits(limits=1, user_api="blas")


def _keep_freed_memory() -> None:
    """Ask glibc to reuse freed activations instead of returning them to the system.

    By default each large array is mapped and unmapped anew, and the page faults cost more than
    the arithmetic of an elementwise pass. Other C libraries are left as they are.
    """
    if platform.libc_ver()[0] != "glibc":
        return
    M_TRIM_THRESHOLD, M_MMAP_MAX, M_ARENA_MAX = -1, -4, -8
    libc = ctypes.CDLL(None)
    libc.mallopt(M_MMAP_MAX, 0)
    libc.mallopt(M_TRIM_THRESHOLD, (1 << 31) - 1)
    libc.mallopt(M_ARENA_MAX, 1)  # a thread's own arena cannot hold arrays above 64 MB
