"""Work on a Dask cluster: the same results as here, also when workers die.

A piece of work is a function and an item, both pickled. The function, with the arrays that it
holds, travels once to each worker. All that is sent stays with the scheduler until the work is
done, so Dask does elsewhere what a dead worker had; data that was scattered to workers would be
lost with them.
"""

from __future__ import annotations

import io
import logging
import pickle
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from poolbn.errors import ClusterError, MissingPackageError, OptionError, PoolbnError

if TYPE_CHECKING:
    from distributed import Client, Future

T = TypeVar("T")
R = TypeVar("R")

LOCAL = "local"
_AHEAD = 64  # pieces that are sent before the first comes back, at least
_RETRIES = 3  # of a piece that fails for a reason that may pass, such as a full disk
_ANSWER = 10  # seconds to wait for a scheduler
_FIRST_WORKER = 10  # and for its first worker


@contextmanager
def on_cluster(cluster: Client | str) -> Iterator[None]:
    """Inside this, long work runs on a Dask cluster: `pb.bootstrap`, `pb.compare`, the study.

    Results are those that come without it, to the last bit. When a worker dies, its work is done
    again by another. Workers need the same version of poolbn.

    Args:
        cluster: a `distributed.Client`, the address of a scheduler such as "tcp://10.0.0.1:8786",
            or "local" for processes on this machine, one for each core, that end afterwards.

    Raises:
        ClusterError: the scheduler cannot be reached, has no workers, or they lack this poolbn;
            later, that work was lost again and again.
        MissingPackageError: Dask is not installed.
        OptionError: `cluster` is none of these.

    Examples:
        >>> import poolbn as pb
        >>> trial = pb.datasets.opt()[["clinic", "age", "bmi"]].dropna()
        >>> with pb.on_cluster("local"):  # doctest: +SKIP
        ...     boot = pb.bootstrap(trial, group="clinic", replicates=1000)
    """
    with ExitStack() as stack:
        client = _connect(cluster, stack)
        _check_workers(client)
        stack.enter_context(client.as_current())
        token = _current.set(Cluster(client))
        try:
            yield
        finally:
            _current.reset(token)


def current() -> Cluster | None:
    """The cluster that work should run on, if any."""
    return _current.get()


class Cluster:
    """A connection, and the function that was sent through it last."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self._shared: Future | None = None

    def map(self, function: Callable[[T], R], items: Sequence[T]) -> Iterator[tuple[int, R]]:
        """Apply a function to each item in workers: indices and results, as they come.

        Both must pickle. An item is done again when a worker dies.
        """
        from distributed import CancelledError, KilledWorker, as_completed
        from distributed.client import ClosedClientError

        waiting: dict[Future, int] = {}

        def start(index: int, item: T) -> Future:
            future = self._submit(_piece, shared, _packed(item))
            waiting[future] = index
            return future

        try:
            # Dask knows it by its content. Kept for the next map: a search asks many times of one
            # table, with one function.
            self._shared = shared = self._submit(_Shared, _packed(function))
            numbered = enumerate(items)
            ahead = max(_AHEAD, 4 * sum(self.client.nthreads().values()))
            coming = as_completed([start(*each) for each in islice(numbered, ahead)])
            for future in coming:
                ok, result = future.result()
                if not ok:
                    raise result
                index = waiting.pop(future)
                for each in islice(numbered, 1):
                    coming.add(start(*each))
                yield index, result
        except KilledWorker as error:
            raise ClusterError(
                f"the workers that had one piece of the work died, {error.allowed_failures + 1} "
                "in turn; they may need more memory, or look into their logs"
            ) from error
        except (CancelledError, ClosedClientError) as error:
            raise ClusterError(
                "pieces of work were lost, since the connection was closed, or the scheduler is "
                "gone or was restarted; start the cluster, and the work, again"
            ) from error
        finally:
            if self.client.status == "running":
                self.client.cancel(list(waiting))  # nobody waits any more

    def _submit(self, function: Callable[..., Any], *given: Any) -> Future:
        import dask

        # What is large is sent on purpose.
        with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1 TiB"}):
            return self.client.submit(function, *given, pure=function is _Shared, retries=_RETRIES)


_current: ContextVar[Cluster | None] = ContextVar("poolbn_cluster", default=None)


# In workers


class _Shared:
    """A function for many pieces, unpickled once in each worker, and gone when they are done."""

    def __init__(self, content: bytes) -> None:
        self._content = content
        self.function: Callable[[Any], Any] = pickle.loads(content)

    def __reduce__(self) -> tuple[type[_Shared], tuple[bytes]]:
        return _Shared, (self._content,)


def _piece(shared: _Shared, content: bytes) -> tuple[bool, Any]:
    """The result, or the error that would come again, so that Dask does not try again."""
    try:
        return True, shared.function(pickle.loads(content))
    except PoolbnError as error:
        return False, error


def _packed(value: object) -> bytes:
    """A pickle in which arrays stay read-only: for others, kernels would compile again."""
    import cloudpickle

    class Pickler(cloudpickle.Pickler):  # type: ignore[misc]
        def reducer_override(self, part: object) -> Any:
            if type(part) is np.ndarray and not part.flags.writeable:
                return _read_only, (part.copy(order="K"),)
            return super().reducer_override(part)

    out = io.BytesIO()
    Pickler(out).dump(value)
    return out.getvalue()


def _read_only(array: NDArray[Any]) -> NDArray[Any]:
    array.flags.writeable = False
    return array


# Connecting


def _connect(cluster: object, stack: ExitStack) -> Client:
    try:
        from distributed import Client, LocalCluster
    except ImportError as error:
        raise MissingPackageError(
            "dask is needed for this and is not installed: pip install poolbn[dask]"
        ) from error
    if isinstance(cluster, Client):
        if cluster.asynchronous:
            raise OptionError("the client is asynchronous; give one with asynchronous=False")
        return cluster
    if cluster == LOCAL:
        made = LocalCluster(
            threads_per_worker=1, dashboard_address=":0", silence_logs=logging.ERROR
        )
        client = stack.enter_context(Client(stack.enter_context(made)))
        client.run(_ignore_sigint)
        return client
    if not isinstance(cluster, str) or "://" not in cluster:
        what = repr(cluster) if isinstance(cluster, str) else type(cluster).__name__
        raise OptionError(
            f"{what} is no cluster; give a distributed.Client, the address of a scheduler such as "
            f"'tcp://10.0.0.1:8786', or {LOCAL!r} for processes on this machine"
        )
    try:
        client = stack.enter_context(Client(cluster, timeout=_ANSWER))
    except (OSError, ValueError) as error:
        raise ClusterError(
            f"no Dask scheduler answers at {cluster!r}; is it running, and is the address right?"
        ) from error
    try:
        client.wait_for_workers(1, timeout=_FIRST_WORKER)
    except TimeoutError as error:
        raise ClusterError(
            f"the scheduler at {cluster!r} has no workers after {_FIRST_WORKER} seconds; start "
            f"some with: dask worker {cluster}"
        ) from error
    return client


def _ignore_sigint() -> None:
    """Ctrl-C on a terminal reaches its workers too, and is for the client, which then ends them."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _check_workers(client: Client) -> None:
    """Raise unless all workers have the same poolbn; those that come later are trusted."""
    from importlib.metadata import version  # takes long to load

    here = version("poolbn")
    for worker, about in client.get_versions(packages=["poolbn"])["workers"].items():
        found = about["packages"]["poolbn"]
        if found is None:
            raise ClusterError(f"the worker at {worker} cannot run poolbn; install it there")
        if found != here:
            raise ClusterError(
                f"the worker at {worker} has poolbn {found}, and here is {here}; install the same "
                "version"
            )
