"""Where runs are executed: processes of this machine, or an existing engine's workers.

A back end is a `concurrent.futures.Executor` that calls `worker.run_task`, which starts a process
for each run; what differs is only where that call is made. With dask the run folders, the corpora
and the token cache must be on a file system that its workers share with this process.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager

from paperkiln.atlas import worker
from paperkiln.errors import PaperkilnError

ANSWERS_WITHIN = 10  # seconds, a scheduler that is there


@contextmanager
def local(jobs: int) -> Iterator[Executor]:
    """Yield an executor of `jobs` threads, each of which waits for one process."""
    pool = ThreadPoolExecutor(jobs)
    worker.allow()
    try:
        yield pool
    finally:  # nothing is running any more, unless this is an interrupt or an error
        pool.shutdown(wait=False, cancel_futures=True)
        worker.stop_all()
        pool.shutdown(wait=True)


@contextmanager
def dask(jobs: int, address: str | None = None) -> Iterator[Executor]:
    """Yield an executor on the dask cluster at `address`, or on a local one of `jobs` workers.

    Raises PaperkilnError where dask is not installed or no scheduler answers.
    """
    try:
        from distributed import Client, LocalCluster
    except ImportError:
        raise PaperkilnError(
            "the dask back end needs dask: pip install 'dask[distributed]'"
        ) from None
    if address is None:
        with (
            LocalCluster(
                n_workers=jobs, threads_per_worker=1, dashboard_address=None, silence_logs=50
            ) as cluster,
            Client(cluster) as client,
        ):
            yield client.get_executor(pure=False)
        return
    try:
        client = Client(address, timeout=ANSWERS_WITHIN)
    except (OSError, ValueError) as error:
        raise PaperkilnError(f"{address}: no dask scheduler answers there ({error})") from None
    with client:
        yield client.get_executor(pure=False)
