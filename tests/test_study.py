"""The paper's study: cells that can be run alone, runs that can be killed."""

from __future__ import annotations

import math
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from benchmarks.study import __main__ as study_command
from benchmarks.study import run as studyrun
from benchmarks.study import study
from benchmarks.study.run import run_study, study_results
from benchmarks.study.study import (
    EQUAL,
    MODELS,
    ORIGINAL,
    PRESETS,
    WORDED,
    Chunk,
    Preset,
    run_chunk,
    truth,
)
from helpers import REFERENCE, reference
from typer.testing import CliRunner

import poolbn as pb
from poolbn.inference.linear import leave_out

CHUNK = Chunk("balanced", N=4, mean_parents=1, F=3, network=0)
TINY = Preset((4,), (1,), (2, 3), (3,), rows=(10, 20), networks=1, replicates=2)


@pytest.fixture(scope="module")
def tiny() -> None:
    """A preset that takes a second or two."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(PRESETS, "tiny", TINY)
        yield


@pytest.fixture(scope="module")
def folder(tiny: None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("study")
    run_study(out, preset="tiny", workers=1)
    return out


def parts(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in sorted(folder.glob("parts/*"))}


# The grid


def test_the_grid_is_the_papers() -> None:
    chunks = list(PRESETS["paper"].chunks())
    assert len(set(chunks)) == len(chunks) == 2 * 3 * 3 * 5 * 5 + 3 * 3 * 3 * 5
    assert len(chunks) * 4 * 5 == 11_700
    assert {c.F for c in chunks if c.scenario == "unbalanced"} == {5, 10, 20}


def test_a_cell_alone_gives_the_same_bits() -> None:
    whole = run_chunk(CHUNK, TINY, ("GBN", "CGBN", "LME"))
    alone = run_chunk(CHUNK, replace(TINY, rows=(20,)), ("LME",))
    same = [found for found in whole if found.rows == 20 and found.model == "LME"]
    assert len(alone) == TINY.replicates
    assert repr(alone) == repr(same)  # nan equals nan, and every digit counts


def test_seeds_differ_between_cells() -> None:
    kinds = [CHUNK, CHUNK._replace(network=1), CHUNK._replace(F=2)]
    assert len({truth(kind).fits["X1"].coef[0, 0] for kind in kinds}) == 3
    tables = [study.table_of(CHUNK, truth(CHUNK), *cell) for cell in ((10, 0), (10, 1), (11, 0))]
    assert len({table.mean[0, 0] for table in tables}) == 3
    assert study.seed_of("table", 1, 23) != study.seed_of("table", 12, 3)


def test_the_truth_of_each_scenario() -> None:
    balanced, unbalanced, homogeneous, worded, equal = (
        truth(CHUNK._replace(scenario=s))
        for s in (*study.SCENARIOS, "balanced" + WORDED, "balanced" + EQUAL)
    )
    for node, fit in balanced.fits.items():
        assert (unbalanced.fits[node].coef == fit.coef).all()
        assert (homogeneous.fits[node].coef == fit.coef[0]).all()
        assert (homogeneous.fits[node].sigma2 == homogeneous.fits[node].sigma2[0]).all()
        assert not np.isclose(worded.fits[node].coef, fit.coef).any()
        assert (equal.fits[node].coef == fit.coef).all()
        assert np.ptp(equal.fits[node].sigma2) == 0
    assert any(np.ptp(fit.sigma2) > 0 for fit in balanced.fits.values())
    assert worded.dag == balanced.dag
    assert (unbalanced.joint.prior == [0.3, 0.3, 0.4]).all()


def test_homogeneous_data_against_the_original_network() -> None:
    small = replace(TINY, rows=(20,), replicates=1)
    chunk = CHUNK._replace(scenario="homogeneous")
    (usual,) = run_chunk(chunk, small, ("GBN",))
    (other,) = run_chunk(chunk._replace(scenario="homogeneous" + ORIGINAL), small, ("GBN",))
    assert (usual.shd, usual.extra, usual.fits) == (other.shd, other.extra, other.fits)
    net = MODELS["GBN"](study.table_of(chunk, truth(chunk), 20, 0))
    assert usual.kl == pb.metrics.kl(truth(chunk), net)
    assert other.kl == pb.metrics.kl(truth(CHUNK), net)
    assert other.kl > 5 * usual.kl


# Models and measures


@pytest.fixture(scope="module")
def table() -> object:
    net = truth(Chunk("unbalanced", N=6, mean_parents=2, F=4, network=0))
    return pb.random_table(net, [30, 30, 12, 9], seed=3)


def test_published_residual_variances_are_those_of_the_rows(table: object) -> None:
    net = MODELS["LME"](pb.stats(table, group="F"))
    assert net.dag.arcs
    for node, fit in net.fits.items():
        for j, level in enumerate(net.levels):
            rows = table[table["F"] == level]
            fitted = fit.coef[j, 0] + rows[list(fit.parents)].to_numpy() @ fit.coef[j, 1:]
            sd = np.std(rows[node].to_numpy() - fitted, ddof=1)
            assert math.isclose(fit.sigma2[j], sd**2, rel_tol=1e-9)


def test_models_differ_in_what_their_names_say(table: object) -> None:
    data = pb.stats(table, group="F")
    nets = {name: model(data) for name, model in MODELS.items()}
    for name in ("LME-REML", "LME-ML"):
        assert all((fit.sigma2 == fit.sigma2[0]).all() for fit in nets[name].fits.values())
    assert nets["LME"].dag == nets["LME-REML"].dag
    node = next(node for node, fit in nets["LME"].fits.items() if fit.parents)
    parents = nets["LME"].fits[node].parents
    reml = pb.fit_node(data, node, parents, pooling=pb.Partial(method="reml"))
    assert (nets["LME"].fits[node].coef == reml.coef).all()
    assert nets["LME-ML"].dag == nets["LME-ML-own"].dag
    assert nets["CGBN-ML"].score != nets["CGBN"].score


@pytest.mark.parametrize("case", reference("bn/reml.json"), ids=lambda case: case["id"])
def test_published_networks_are_those_of_bnlearn_with_lme4(case: dict) -> None:
    """All but one, where lme4 stopped early on the way and the climb went elsewhere."""
    data = pb.stats(REFERENCE / "bn" / case["data"], group="F")
    arcs = {(parent, child) for parent, child in case["arcs"]}
    net = MODELS["LME"](data)
    assert (set(net.dag.arcs) == arcs) == (case["id"] != "bn09_AP4_J10_nj20")
    same = pb.score(data, arcs, pooling=pb.Partial(method="reml"))
    assert case["score"] - 1e-6 < same < case["score"] + 5  # what lme4 leaves on the table


def test_scaled_scores_do_not_know_units() -> None:
    chunk = Chunk("balanced", N=6, mean_parents=2, F=3, network=1)
    data = study.table_of(chunk, truth(chunk), 30, 0)
    unit = np.array([1.0, 100.0, 0.01, 10.0, 0.1, 3.0])
    scatter = data.scatter * np.outer(unit, unit)
    other = replace(data, mean=data.mean * unit, scatter=scatter, facts=(), cubes=np.zeros(0))
    assert MODELS["LME"](data).dag != MODELS["LME"](other).dag  # REML scores do
    net, same = MODELS["LME-scaled"](data), MODELS["LME-scaled"](other)
    assert net.dag == same.dag
    # The parameters are those of the published model in the units of the data.
    for node, fit in net.fits.items():
        expected = pb.fit_node(data, node, fit.parents, pooling=pb.Partial(method="reml"))
        np.testing.assert_array_equal(fit.coef, expected.coef)
        at = data.names.index(node)
        np.testing.assert_allclose(same.fits[node].sigma2, unit[at] ** 2 * fit.sigma2, rtol=1e-5)


def test_lme4_would_fit_what_is_published() -> None:
    true = truth(Chunk("homogeneous", N=8, mean_parents=4, F=2, network=0))
    data = pb.stats(pb.random_table(true, 4, seed=1), group="F")
    net = MODELS["LME"](data)
    assert all((len(fit.parents) + 1) * 2 < data.n_rows for fit in net.fits.values())


@pytest.mark.parametrize("seed", range(3))
def test_leave_out_is_predict_with_each_node_in_turn(seed: int) -> None:
    true = pb.random_network(pb.random_dag(5, 2, seed=seed), data_sets=3, seed=seed)
    true = replace(true, n=np.array([1, 5, 2]))
    rows = true.sample(40, seed=seed)
    nodes = list(true.dag.nodes)
    codes = np.array([true.levels.index(level) for level in rows["F"]])
    found = leave_out(true.linear, true.joint.prior, rows[nodes].to_numpy(), codes)
    for i, node in enumerate(nodes):
        known, unknown = (true.predict(t, node)["mean"] for t in (rows, rows.drop(columns="F")))
        np.testing.assert_allclose(found.known[:, i], known, rtol=1e-10, atol=1e-10)
        np.testing.assert_allclose(found.unknown[:, i], unknown, rtol=1e-10, atol=1e-10)
    likely = true.classify(rows.drop(columns="F"))[list(true.levels)].to_numpy().argmax(axis=1)
    assert (found.data_set == likely).all()


# Runs


def test_the_results_are_those_of_the_chunks(folder: Path) -> None:
    found = study_results(folder)
    assert len(found) == len(list(TINY.chunks())) * 2 * 2 * 3
    one = found.query("scenario == 'balanced' and F == 3 and model == 'LME'")
    alone = run_chunk(CHUNK, TINY, ("LME",))
    assert one["kl"].tolist() == [measures.kl for measures in alone]


def test_two_workers_write_the_same_bytes(folder: Path, tmp_path: Path) -> None:
    run_study(tmp_path, preset="tiny", workers=2)
    assert parts(tmp_path) == parts(folder)


def test_parts_merge(folder: Path, tmp_path: Path) -> None:
    for k in (1, 2):
        run_study(tmp_path / str(k), preset="tiny", workers=1, part=(k, 2))
    both = parts(tmp_path / "1") | parts(tmp_path / "2")
    assert both == parts(folder)
    merged = study_results([tmp_path / "2", tmp_path / "1"])
    assert merged.equals(study_results(folder))


def test_nothing_is_counted_twice(folder: Path) -> None:
    with pytest.raises(pb.FileError, match="twice; give each part once"):
        study_results([folder, folder])


def test_a_finished_chunk_is_not_run_again(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_study(tmp_path, preset="tiny", workers=1, part=(1, 2))
    ran = []
    monkeypatch.setattr(
        studyrun, "run_chunk", lambda chunk, *rest: ran.append(chunk) or run_chunk(chunk, *rest)
    )
    seen = []
    run_study(tmp_path, preset="tiny", workers=1, watch=seen.append)
    chunks = list(TINY.chunks())
    assert sorted(set(ran)) == sorted(chunks[1::2])
    assert [p.done for p in seen] == [3, 4, 5]
    assert 0.3 < seen[0].share < seen[1].share < seen[2].share == pytest.approx(1)
    assert parts(tmp_path) == parts(folder)


def test_an_empty_part_does_nothing(tiny: None, tmp_path: Path) -> None:
    run_study(tmp_path, preset="tiny", part=(9, 9))
    assert not parts(tmp_path)


@pytest.mark.slow
def test_killed_at_ten_random_moments(tmp_path: Path) -> None:
    script = Path(__file__).with_name("killed_study.py")
    alone = os.environ | {"POOLBN_WORKER": "1", "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, script, tmp_path], check=False, capture_output=True, text=True, env=alone
    )
    assert done.returncode == 0, done.stderr
    assert "killed 10 times" in done.stdout


# Commands


def test_the_command_runs_and_goes_on(tiny: None, tmp_path: Path) -> None:
    command = ["run", "--preset", "tiny", "--out", str(tmp_path), "--workers", "1"]
    part = ["--models", "GBN, CGBN", "--slice", "2/3"]
    first = CliRunner().invoke(study_command.app, [*command, *part])
    assert first.exit_code == 0, first.output
    assert "2 of 2 networks, 100%" in first.output
    other = CliRunner().invoke(study_command.app, command)
    assert other.exit_code == 2
    assert "holds another study (tiny: GBN, CGBN)" in other.output


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--slice", "2"], "write it like 2/3"),
        (["--slice", "3/2"], "part 3 of 2"),
        (["--preset", "papers"], "did you mean 'paper'?"),
        (["--models", "CGB"], "did you mean 'CGBN'?"),
        (["--models", ","], "no models"),
        (["--workers", "0"], "--workers 0"),
    ],
)
def test_a_wrong_option_is_one_paragraph(options: list[str], says: str, tmp_path: Path) -> None:
    done = CliRunner().invoke(study_command.app, ["run", "--out", str(tmp_path / "s"), *options])
    assert done.exit_code == 2
    assert says in done.output
    assert "Traceback" not in done.output
    assert done.output.startswith("error: ")


def test_ctrl_c_says_how_to_go_on(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def interrupted(*arguments: object, **options: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(study_command, "run_study", interrupted)
    done = CliRunner().invoke(study_command.app, ["run", "--out", str(tmp_path)])
    assert done.exit_code == 130
    assert done.output == "stopped; the same command goes on where this one ended\n"


def test_the_time_left(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture) -> None:
    clock = [0.0]
    monkeypatch.setattr(study_command.time, "monotonic", lambda: clock[-1])
    watch = study_command._Watch()
    for now, done, share in ((0.0, 0, 0.2), (40.0, 1, 0.3), (41.0, 2, 0.31), (3000.0, 3, 0.5)):
        clock.append(now)
        watch(studyrun.Progress(done, 9, share))
    assert capsys.readouterr().err.splitlines() == [
        "0 of 9 networks, 20%",
        "1 of 9 networks, 30%, 0:04:40 left",  # a tenth took 40 s, seven tenths are left
        "3 of 9 networks, 50%, 1:23:20 left",
    ]
