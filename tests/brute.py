"""Networks with columns of all kinds by brute force: levels enumerated, numbers integrated over.

Nothing of poolbn's inference is used: densities of nodes come from the numbers of their fits, by
scipy and dense rules.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
from scipy.optimize import brentq
from scipy.special import gammaln, log_expit, log_softmax, logsumexp
from scipy.stats import norm
from scipy.stats import t as student

import poolbn as pb
from poolbn.nodes.gaussianfit import GaussianFit
from poolbn.nodes.localfit import LocalFit
from poolbn.nodes.predictive import predictive
from poolbn.nodes.regression import RegressionFit
from poolbn.nodes.tabular import TabularFit

MOST = 250  # a count that next to never is larger
FAR = 14.0  # of the variable of integration, in which tails die out exponentially


def legendre(low: float, high: float, panels: int, order: int = 8) -> tuple[Any, Any]:
    """Nodes and weights of Gauss's rule in each of some panels."""
    x, w = np.polynomial.legendre.leggauss(order)
    edges = np.linspace(low, high, panels + 1)
    half = np.diff(edges) / 2
    nodes = (edges[:-1] + half)[:, None] + half[:, None] * x
    return nodes.ravel(), (half[:, None] * w).ravel()


@cache
def normal_rule(panels: int) -> tuple[np.ndarray, np.ndarray]:
    """A dense rule for expectations under N(0, 1)."""
    z, w = legendre(-8.5, 8.5, panels, 12)
    return z, w * norm.pdf(z)


def categories(fit: LocalFit) -> tuple[str, ...]:
    return fit.categories if isinstance(fit, RegressionFit | TabularFit) else ()


def is_finite(fit: LocalFit) -> bool:
    """Discrete or a count."""
    return not isinstance(fit, GaussianFit)


@dataclass(frozen=True)
class Found:
    """The distribution of a target: points (levels or counts), or a density's integral.

    Attributes:
        p: probabilities of levels 0, 1, ... or None.
        cdf: P(target <= x) or None.
        mean: of the target.
        sd: likewise.
    """

    p: np.ndarray | None
    cdf: Callable[[float], float] | None
    mean: float
    sd: float

    def quantile(self, q: float) -> float:
        if self.p is not None:
            return float(np.searchsorted(np.cumsum(self.p), q - 1e-12))
        assert self.cdf is not None
        wide = 60 * self.sd
        return brentq(lambda x: self.cdf(x) - q, self.mean - wide, self.mean + wide, xtol=1e-13)


class Brute:
    """A network, with estimates for certain (plugin) or with what is uncertain of them."""

    def __init__(self, net: pb.Network, *, plugin: bool, most: int = MOST, fine: int = 7) -> None:
        self.net, self.plugin, self.most, self.fine = net, plugin, most, fine
        self.names = list(net.dag.topological_order())
        self.prior = net.n / net.n.sum()

    # One node given its parents

    def sure(self, j: int) -> bool:
        return self.plugin and self.net.levels[j] not in self.net.adapted

    def columns(self, names: tuple[str, ...], values: dict[str, Any]) -> list[Any]:
        """1 and columns of numbers, as a fit names them."""
        made: list[Any] = [np.float64(1.0)]
        for name in names:
            if name in self.net.fits:
                made.append(values[name])
            else:
                parent, level = name.split("=", 1)
                code = categories(self.net.fits[parent]).index(level)
                made.append((values[parent] == code) * 1.0)
        return made

    def log_node(self, name: str, x: Any, values: dict[str, Any], j: int) -> np.ndarray:
        """The log density of x given the values of parents; arrays that go together."""
        fit = self.net.fits[name]
        if isinstance(fit, TabularFit):
            at: Any = 0
            for parent, levels in zip(fit.parents, fit.given, strict=True):
                at = at * len(levels) + np.asarray(values[parent]).astype(int)
            with np.errstate(divide="ignore"):
                return np.log(fit.probabilities[j][at, np.asarray(x).astype(int)])
        if isinstance(fit, GaussianFit):
            Z = np.stack(np.broadcast_arrays(*self.columns(fit.columns, values)), axis=-1)
            if self.plugin:
                cov = np.zeros_like(fit.coef_cov[j]) if self.sure(j) else fit.coef_cov[j]
                variance = fit.sigma2[j] + np.einsum("...a,ab,...b", Z, cov, Z)
                if not np.any(variance):
                    return np.where(np.isclose(x, Z @ fit.coef[j], rtol=1e-12), 0.0, -np.inf)
                return norm.logpdf(x, Z @ fit.coef[j], np.sqrt(variance))
            mean, scale2, df = predictive(fit).at(Z.reshape(-1, Z.shape[-1]), j)
            shape = Z.shape[:-1]
            scale = np.sqrt(scale2).reshape(shape)
            z = (x - mean.reshape(shape)) / scale
            df = df.reshape(shape)
            log = np.where(np.isinf(df), norm.logpdf(z), student.logpdf(z, np.minimum(df, 1e12)))
            return log - np.log(scale)
        assert isinstance(fit, RegressionFit)
        Z = np.stack(np.broadcast_arrays(*self.columns(fit.columns, values)), axis=-1)
        eta = Z @ fit.coef[j].T  # (..., C)
        C, q = fit.coef[j].shape
        if self.sure(j) or not fit.coef_cov[j].any():
            return self._response(fit, x, eta)
        V = fit.coef_cov[j].reshape(C, q, C, q)
        cov = np.einsum("...k,akbm,...m->...ab", Z, V, Z)
        values_, vectors = np.linalg.eigh(cov)
        root = vectors * np.sqrt(np.maximum(values_, 0.0))[..., None, :]
        z, w = normal_rule({1: 30, 2: self.fine}.get(C, 4))
        total: Any = 0.0
        for point in np.ndindex(*[len(z)] * (C - 1)):  # the last dimension at once
            zs = [np.full(len(z), z[k]) for k in point] + [z]
            weight = math.prod((w[k] for k in point), start=1.0) * w
            at = eta[..., None, :] + np.einsum("...ab,bz->...za", root, np.array(zs))
            each = self._response(fit, np.asarray(x)[..., None], at)
            total = total + np.exp(each) @ weight
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(total))

    @staticmethod
    def _response(fit: RegressionFit, y: Any, eta: np.ndarray) -> np.ndarray:
        """Log probabilities at linear predictors (..., C)."""
        if fit.categories and eta.shape[-1] == 1:
            return log_expit(np.where(np.asarray(y) == 1, eta[..., 0], -eta[..., 0]))
        if fit.categories:
            logs = log_softmax(np.concatenate([0 * eta[..., :1], eta], axis=-1), axis=-1)
            y, logs0 = np.broadcast_arrays(np.asarray(y, dtype=int), logs[..., 0])
            logs = np.broadcast_to(logs, (*logs0.shape, logs.shape[-1]))
            return np.take_along_axis(logs, y[..., None], axis=-1)[..., 0]
        y, log_mean = np.asarray(y, dtype=float), eta[..., 0]
        if math.isinf(fit.dispersion):
            return y * log_mean - np.exp(np.minimum(log_mean, 600.0)) - gammaln(y + 1)
        a = fit.dispersion
        both = np.logaddexp(math.log(a), log_mean)
        own = gammaln(y + a) - gammaln(a) - gammaln(y + 1)
        return own + a * (math.log(a) - both) + y * (log_mean - both)

    # All nodes given some

    def relevant(self, seen: set[str], targets: list[str]) -> list[str]:
        """Nodes that are seen or asked for, and those above them."""
        wanted = seen | set(targets)
        for name in reversed(self.names):
            if name in wanted:
                wanted |= set(self.net.dag.parents(name))
        return [name for name in self.names if name in wanted]

    def given(self, row: dict[str, float], label: object, target: str | None) -> Given:
        """What a row says."""
        sets = range(len(self.net.levels))
        if label is not None:
            sets = range(self.net.levels.index(label), self.net.levels.index(label) + 1)
        parts = [self._in_set(row, j, target) for j in sets]
        log = np.array([part.log_z for part in parts])
        if label is None:
            with np.errstate(divide="ignore"):  # a new data set without rows
                log = log + np.log(self.prior)
        total = float(logsumexp(log))
        return Given(parts, np.exp(log - total) if np.isfinite(total) else log, total)

    def _in_set(self, row: dict[str, float], j: int, target: str | None) -> Part:
        fits, names = self.net.fits, self.relevant(set(row), [target] if target else [])
        hidden = [name for name in names if name not in row]
        finite = [name for name in hidden if is_finite(fits[name])]
        smooth = [name for name in hidden if not is_finite(fits[name])]
        axes = len(finite) + 2
        values: dict[str, Any] = {name: np.full([1] * axes, row[name]) for name in row}
        for k, name in enumerate(finite):
            K = len(categories(fits[name])) or self.most
            values[name] = np.arange(float(K)).reshape([-1 if a == k else 1 for a in range(axes)])
        density = {n for n in names if n not in self.net.inputs or n in hidden}
        if len(smooth) > 1:
            return _Normal(self, j, names, values, finite, smooth, target).part()
        log: Any = np.zeros([1] * axes)
        grid = None
        if smooth:
            grid = self._grid(smooth[0], values, finite, j)
            values[smooth[0]], log = grid(FAR, None)
        for name in names:
            if name in density:
                log = log + self.log_node(name, values[name], values, j)
        return Part(self, j, names, density, values, log, finite, target, grid)

    def _grid(
        self, name: str, values: dict[str, Any], finite: list[str], j: int
    ) -> Callable[[float, Any], tuple[Any, Any]]:
        """Values of a node, and logarithms of weights, for x = m + s sinh(u) below some x."""
        fit = self.net.fits[name]
        assert isinstance(fit, GaussianFit)
        known = {parent: values[parent] for parent in self.net.dag.parents(name)}
        columns = [np.asarray(c, dtype=float) for c in self.columns(fit.columns, known)]
        mean = np.asarray(
            sum(b * column for b, column in zip(fit.coef[j], columns, strict=True))
        ) * np.ones([1] * (len(finite) + 2))
        scale = 2 * math.sqrt(fit.sigma2[j])

        def made(far: float, below: float | None) -> tuple[Any, Any]:
            if below is None:
                u, w = legendre(-far, far, 90)
                u, w = u * np.ones(mean.shape), w * np.ones(mean.shape)
            else:
                top = np.arcsinh((below - mean) / scale)
                x, weight = legendre(0, 1, 90)
                u, w = -far + (top + far) * x, (top + far) * weight
            return mean + scale * np.sinh(u), np.log(w * scale * np.cosh(u))

        return made


@dataclass(frozen=True)
class Part:
    """One data set: log weights of all configurations; the last axis is a continuous node's."""

    brute: Brute
    j: int
    names: list[str]
    density: set[str]
    values: dict[str, Any]
    log: np.ndarray
    finite: list[str]
    target: str | None
    grid: Callable[[float, Any], tuple[Any, Any]] | None

    @property
    def size(self) -> int:
        return self.brute.most

    @property
    def log_z(self) -> float:
        return float(logsumexp(self.log))

    def probabilities(self, size: int) -> np.ndarray:
        """Of the levels of a target."""
        assert self.target is not None
        p = np.exp(self.log - self.log_z)
        axis = self.finite.index(self.target)
        own = p.sum(axis=tuple(a for a in range(p.ndim) if a != axis))
        return own if len(own) == size else np.broadcast_to(own / size, size)

    def moments(self) -> tuple[float, float]:
        p = np.exp(self.log - self.log_z)
        x = np.broadcast_to(self.values[self.target], p.shape)
        mean = float((p * x).sum())
        return mean, float((p * (x - mean) ** 2).sum())

    def cdf(self, x: float) -> float:
        assert self.grid is not None
        assert self.target is not None
        values = dict(self.values)
        values[self.target], log = self.grid(FAR, x)
        for name in self.names:
            if name in self.density:
                log = log + self.brute.log_node(name, values[name], values, self.j)
        return float(np.exp(logsumexp(log) - self.log_z))


@dataclass(frozen=True)
class Given:
    """All data sets."""

    parts: list[Any]
    weights: np.ndarray
    loglik: float

    def target(self, fit: LocalFit) -> Found:
        if is_finite(fit):
            size = len(categories(fit)) or self.parts[0].size
            p = sum(w * part.probabilities(size)
                    for w, part in zip(self.weights, self.parts, strict=True))  # fmt: skip
            k = np.arange(size)
            mean = float(p @ k)
            return Found(p, None, mean, math.sqrt(p @ (k - mean) ** 2))
        each = [part.moments() for part in self.parts]
        m, v = np.array(each).T
        mean = float(self.weights @ m)
        sd = math.sqrt(self.weights @ (v + (m - mean) ** 2))

        def cdf(x: float) -> float:
            return sum(w * part.cdf(x)
                       for w, part in zip(self.weights, self.parts, strict=True))  # fmt: skip

        return Found(None, cdf, mean, sd)


class _Normal:
    """Estimates for certain, and several continuous nodes hidden: normal given the others.

    Those that discrete nodes or counts depend on are integrated over, one by one on a grid.
    """

    def __init__(
        self,
        brute: Brute,
        j: int,
        names: list[str],
        values: dict[str, Any],
        finite: list[str],
        smooth: list[str],
        target: str | None,
    ) -> None:
        assert brute.sure(j), "only where estimates are certain"
        fits = brute.net.fits
        self.finite, self.smooth, self.target, self.values = finite, smooth, target, dict(values)
        self.size = brute.most
        own = [name for name in names if not is_finite(fits[name])]
        at = {name: i for i, name in enumerate(own)}
        B, D = np.zeros((len(own), len(own))), np.zeros(len(own))
        free: list[Any] = []
        for name in own:
            fit = fits[name]
            assert isinstance(fit, GaussianFit)
            total: Any = np.zeros([1] * (len(finite) + 2))
            for b, of, column in zip(
                fit.coef[j], ("", *fit.columns),
                brute.columns(fit.columns, values | {s: np.float64(0) for s in own}), strict=True,
            ):  # fmt: skip
                if of in at:
                    B[at[name], at[of]] = b
                else:
                    total = total + b * column
            free.append(total)
            D[at[name]] = fit.sigma2[j]
        A = np.linalg.inv(np.eye(len(own)) - B)
        cov = A @ np.diag(D) @ A.T
        mean = np.einsum("ab,...b->...a", A, np.stack(np.broadcast_arrays(*free), axis=-1))
        seen = [name for name in own if name in values]
        self.log: Any = np.zeros([1] * (len(finite) + 2))
        if seen:
            o, h = [at[n] for n in seen], [at[n] for n in smooth]
            S = cov[np.ix_(o, o)]
            away = np.stack([values[n] - mean[..., at[n]] for n in seen], axis=-1)
            G = np.linalg.solve(S, cov[np.ix_(o, h)])
            half = np.linalg.slogdet(2 * np.pi * S)[1] / 2
            self.log = -half - np.einsum("...a,ab,...b", away, np.linalg.inv(S), away) / 2
            self.mean = mean[..., h] + away @ G
            self.cov = cov[np.ix_(h, h)] - G.T @ cov[np.ix_(o, h)]
        else:
            self.mean, self.cov = mean[..., [at[n] for n in smooth]], cov
        above = [s for s in smooth if any(
            s in brute.net.dag.parents(n) for n in names if is_finite(fits[n]))]  # fmt: skip
        if len(above) > 1:
            raise NotImplementedError
        if above:
            a = smooth.index(above[0])
            z, w = legendre(-13, 13, 100)
            sd = math.sqrt(self.cov[a, a])
            x = self.mean[..., a] + sd * z
            self.log = self.log + np.log(w * norm.pdf(z))
            gain = self.cov[a] / self.cov[a, a]
            self.values[above[0]] = x
            self.mean = self.mean + (sd * z)[:, None] * gain
            self.cov = self.cov - np.outer(gain, self.cov[a])
        for name in names:
            skipped = name in brute.net.inputs and name in values
            if is_finite(fits[name]) and not skipped:
                self.log = self.log + brute.log_node(name, self.values[name], self.values, j)

    def part(self) -> _Normal:
        return self

    @property
    def log_z(self) -> float:
        return float(logsumexp(self.log))

    def probabilities(self, size: int) -> np.ndarray:
        p = np.exp(self.log - self.log_z)
        axis = self.finite.index(self.target or "")
        own = p.sum(axis=tuple(a for a in range(p.ndim) if a != axis))
        return np.asarray(own if len(own) == size else np.broadcast_to(own / size, size))

    def _target(self) -> tuple[Any, Any, float]:
        t = self.smooth.index(self.target or "")
        p = np.exp(self.log - self.log_z)
        return p, np.broadcast_to(self.mean[..., t], p.shape), max(self.cov[t, t], 0.0)

    def moments(self) -> tuple[float, float]:
        p, m, v = self._target()
        mean = float((p * m).sum())
        return mean, float((p * (m - mean) ** 2).sum() + v)

    def cdf(self, x: float) -> float:
        p, m, v = self._target()
        if v < 1e-20:  # it is the one on the grid
            raise NotImplementedError
        return float((p * norm.cdf(x, m, math.sqrt(v))).sum())


def rows_of(net: pb.Network, frame: pd.DataFrame) -> list[tuple[dict[str, float], object]]:
    """Cells that are there, as codes, and data sets or None."""
    made = []
    for record in frame.to_dict("records"):
        row = {}
        for name, fit in net.fits.items():
            cell = record.get(name)
            if cell is None or pd.isna(cell):
                continue
            own = categories(fit)
            row[name] = float(own.index(str(cell))) if own else float(cell)
        label = record.get(net.group)
        made.append((row, None if label is None or pd.isna(label) else label))
    return made
