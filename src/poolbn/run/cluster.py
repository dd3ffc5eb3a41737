"""Work on a Dask cluster: the same results as here, also when workers die.

A piece of work is a function and an item. Both are pickled, but for their large arrays: each of
those travels once to each worker that needs it, however many pieces share it. All that is sent
stays with the scheduler until the work is done, so what a dead worker had is made again elsewhere;
data that was scattered to workers would be lost with them.
"""

from __future__ import annotations

import io
import logging
import pickle
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from hashlib import blake2b
from importlib.metadata import version
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeVar
from uuid import uuid4
from weakref import WeakValueDictionary

import numpy as np
from numpy.typing import NDArray

from poolbn.errors import ClusterError, MissingPackageError, OptionError, PoolbnError

if TYPE_CHECKING:
    from distributed import Client, Future

T = TypeVar("T")
R = TypeVar("R")
Arrays = dict[str, NDArray[Any]]

LOCAL = "local"
_LARGE = 2**20  # bytes of an array that travels by itself
_AHEAD = 64  # pieces that are sent before the first comes back, at least
_RETRIES = 3  # of a piece that fails for a reason that may pass, such as a full disk
_SECONDS = 10  # to wait for a scheduler, and for its first worker


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
    """A connection, and the large arrays that were sent through it last.

    Attributes:
        client: the connection.
    """

    def __init__(self, client: Client) -> None:
        self.client = client
        self._sent: WeakValueDictionary[str, Future] = WeakValueDictionary()
        self._kept: dict[str, Future] = {}

    def map(self, function: Callable[[T], R], items: Sequence[T]) -> Iterator[tuple[int, R]]:
        """Apply a function to each item in workers.

        Args:
            function: what to do; it and the items must pickle. It may run more than once for an
                item, when a worker dies.
            items: pieces of work.

        Yields:
            The index of an item and its result, as they come.

        Raises:
            ClusterError: a piece was lost again and again, or the scheduler is gone.
        """
        from distributed import CancelledError, KilledWorker, as_completed

        content, arrays = _pack(function)
        shared = self._submit(_Shared, content)
        # Kept for the next map: a search asks many times of one table.
        self._kept = own = self._send(arrays)
        waiting: dict[Future, tuple[int, dict[str, Future]]] = {}

        def start(numbered: tuple[int, T]) -> Future:
            index, item = numbered
            content, arrays = _pack(item)
            sent = own | self._send(arrays)
            future = self._submit(_piece, shared, content, tuple(sent), *sent.values())
            waiting[future] = index, sent  # what was sent is gone when no piece needs it
            return future

        try:
            numbered = enumerate(items)
            ahead = max(_AHEAD, 4 * sum(self.client.nthreads().values()))
            coming = as_completed([start(each) for each in islice(numbered, ahead)])
            for future in coming:
                ok, result = future.result()
                if not ok:
                    raise result
                index, _ = waiting.pop(future)
                for each in islice(numbered, 1):
                    coming.add(start(each))
                yield index, result
        except KilledWorker as error:
            raise ClusterError(
                f"the workers that had one piece of the work died, {error.allowed_failures + 1} "
                "in turn; they may need more memory, or look into their logs"
            ) from error
        except CancelledError as error:
            raise ClusterError(
                "pieces of work were lost, since the scheduler is gone or was restarted; start the "
                "cluster, and the work, again"
            ) from error
        finally:
            self.client.cancel(list(waiting))  # nobody does any more

    def _send(self, arrays: Arrays) -> dict[str, Future]:
        """Large arrays as futures; sent, unless they are there."""
        found: dict[str, Future] = {}
        for digest, array in arrays.items():
            known = self._sent.get(digest)
            found[digest] = known or self._submit(_hold, array, array.flags.writeable)
            self._sent[digest] = found[digest]
        return found

    def _submit(self, function: Callable[..., Any], *given: Any) -> Future:
        import dask

        name = function.__name__.strip("_")
        # The arrays are large, and sent on purpose.
        with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1 TiB"}):
            return self.client.submit(
                function, *given, key=f"poolbn-{name}-{uuid4().hex}", retries=_RETRIES, pure=False
            )


_current: ContextVar[Cluster | None] = ContextVar("poolbn_cluster", default=None)


# In workers


class _Shared:
    """A function for many pieces, unpickled once in each worker, and gone when they are done."""

    def __init__(self, content: bytes) -> None:
        self._content = content
        self._made: list[Callable[[Any], Any]] = []

    def __reduce__(self) -> tuple[type[_Shared], tuple[bytes]]:
        return _Shared, (self._content,)

    def function(self, arrays: Arrays) -> Callable[[Any], Any]:
        if not self._made:
            self._made.append(_unpack(self._content, arrays))
        return self._made[0]


def _hold(array: NDArray[Any], writeable: bool) -> NDArray[Any]:
    """The array as it was: what comes over a wire can be read-only, for which kernels compile."""
    if writeable:
        return np.require(array, requirements="W")
    array.flags.writeable = False
    return array


def _piece(
    shared: _Shared, content: bytes, digests: tuple[str, ...], *arrays: NDArray[Any]
) -> tuple[bool, Any]:
    """The result, or the error that would come again, so that it is not tried again."""
    known = dict(zip(digests, arrays, strict=True))
    try:
        return True, shared.function(known)(_unpack(content, known))
    except PoolbnError as error:
        return False, error


# Pickles without their large arrays


def _pack(value: object) -> tuple[bytes, Arrays]:
    """A pickle, and the large arrays that it refers to, by a digest of their content."""
    import cloudpickle

    arrays: Arrays = {}

    class Pickler(cloudpickle.Pickler):  # type: ignore[misc]
        def persistent_id(self, part: object) -> str | None:
            if type(part) is not np.ndarray or part.nbytes < _LARGE or part.dtype.hasobject:
                return None
            if not (part.flags.c_contiguous or part.flags.f_contiguous):
                return None
            digest = _digest(part)
            arrays[digest] = part
            return digest

    out = io.BytesIO()
    Pickler(out).dump(value)
    return out.getvalue(), arrays


def _digest(array: NDArray[Any]) -> str:
    looks = (array.dtype.str, array.shape, array.strides, array.flags.writeable)
    digest = blake2b(repr(looks).encode(), digest_size=16)
    digest.update(array.ravel(order="K").view(np.uint8).data)
    return digest.hexdigest()


def _unpack(content: bytes, arrays: Arrays) -> Any:
    class Unpickler(pickle.Unpickler):
        def persistent_load(self, digest: str) -> NDArray[Any]:
            return arrays[digest]

    return Unpickler(io.BytesIO(content)).load()


# Connecting


def _connect(cluster: object, stack: ExitStack) -> Client:
    try:
        from distributed import Client, LocalCluster
    except ImportError as error:
        raise MissingPackageError(
            "dask is needed for this and is not installed: pip install poolbn[dask]"
        ) from error
    if isinstance(cluster, Client):
        client = cluster
    elif not isinstance(cluster, str):
        raise OptionError(
            f"{type(cluster).__name__} is no cluster; give a distributed.Client, the address of "
            f"a scheduler such as 'tcp://10.0.0.1:8786', or {LOCAL!r}"
        )
    elif cluster == LOCAL:
        made = LocalCluster(
            threads_per_worker=1, dashboard_address=":0", silence_logs=logging.ERROR
        )
        client = stack.enter_context(Client(stack.enter_context(made)))
        client.run(_deaf)
    else:
        client = _reach(cluster, stack)
    if client.asynchronous:
        raise OptionError("the client is asynchronous; give one with asynchronous=False")
    _check_workers(client)
    return client


def _reach(address: str, stack: ExitStack) -> Client:
    from distributed import Client

    if "://" not in address:
        raise OptionError(
            f"{address!r} is not the address of a scheduler; write it like 'tcp://10.0.0.1:8786', "
            f"or {LOCAL!r} for processes on this machine"
        )
    try:
        client = stack.enter_context(Client(address, timeout=_SECONDS))
    except (OSError, ValueError) as error:
        raise ClusterError(
            f"no Dask scheduler answers at {address!r}; is it running, and is the address right?"
        ) from error
    try:
        client.wait_for_workers(1, timeout=_SECONDS)
    except TimeoutError as error:
        raise ClusterError(
            f"the scheduler at {address!r} has no workers after {_SECONDS} seconds; start some "
            f"with: dask worker {address}"
        ) from error
    return client


def _deaf() -> None:
    """Ctrl-C on a terminal reaches its workers too, and is for the client, which then ends them."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _version() -> str:
    return version("poolbn")


def _check_workers(client: Client) -> None:
    """Raise unless all workers have the same poolbn; those that come later are trusted."""
    for worker, found in client.run(_version, on_error="return").items():
        if isinstance(found, OSError):  # it is about to be given up
            continue
        if isinstance(found, BaseException):
            raise ClusterError(
                f"the worker at {worker} cannot run poolbn ({found}); install it there"
            )
        if found != _version():
            raise ClusterError(
                f"the worker at {worker} has poolbn {found}, and here is {_version()}; install the "
                "same version"
            )
