"""3.4 as a learner runs it: one worker and two in one run; its checks pass, and each injected fault is found by its check."""

from __future__ import annotations

import gzip
import random
import struct
import sys
from pathlib import Path

import pytest

from tests.system.exercising import (
    FOLDERS,
    Finished,
    check_plots_and_tables,
    environment,
    lay_out,
    needs_torch,
    run_ranks,
    run_with_changes,
    start,
    wait,
    words,
)

pytestmark = [pytest.mark.system, needs_torch]

NEEDS_GPU = {"speed-up": "not_measured: not measured: needs a GPU"}


@pytest.fixture(scope="module")
def training(tmp_path_factory: pytest.TempPathFactory) -> Finished:
    return run_ranks("3.4", 2, tmp_path_factory.mktemp("training") / "a node's work")


@pytest.mark.slow
def test_with_its_local_defaults_it_passes_every_check_that_a_cpu_can_make(training: Finished) -> None:
    assert training.code == 0, training.output
    assert words(training.verdict()) == NEEDS_GPU
    assert training.verdict().verdict == "passed"
    assert training.metrics["peak_gpu_memory_bytes"] is None
    assert min(row["accuracy_percent"] for row in training.metrics["comparison"]) > 40, "guessing is 10 %"


@pytest.mark.slow
def test_the_comparison_holds_its_own_formulas(training: Finished) -> None:
    alone, strong, weak = training.metrics["comparison"]
    assert [row["case"] for row in (alone, strong, weak)] == ["1 worker", "2 workers, strong", "2 workers, weak"]
    assert [row["batch_per_rank"] for row in (alone, strong, weak)] == [64, 32, 64]
    assert [row["steps"] for row in (alone, strong, weak)] == [96, 96, 48], "2,048 pictures, 3 epochs"
    assert strong["speedup"] == pytest.approx(alone["train_s"] / strong["train_s"])
    assert weak["speedup"] == pytest.approx(alone["train_s"] / weak["train_s"]), "the same pictures once more"
    for row in (alone, strong, weak):
        assert row["efficiency_percent"] == pytest.approx(100 * row["speedup"] / row["ranks"])
        assert row["samples"] == row["steps"]
    assert training.metrics["strong_speedup"] == strong["speedup"]


@pytest.mark.slow
def test_what_it_measured_can_be_drawn_and_tabled(training: Finished, tmp_path: Path) -> None:
    check_plots_and_tables(training, tmp_path)
    assert "loss: 2 workers, strong" in (tmp_path / "loss.svg").read_text(encoding="utf-8")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("checks", "changes"),
    [
        (
            {"same-training", "learned", "better-than-guessing"},
            [("rank=worker", "rank=0"), ("images[chosen], labels[chosen]", "images[chosen], labels[chosen] * 0")],
        ),
        (
            {"same-data", "parameters-equal"},
            [
                ("generate(wanted, SEED)", "generate(wanted, rank)"),
                ('network if case == "1 worker" else', "network if case else"),
            ],
        ),
    ],
    ids=["one share for all, with wrong labels", "each on its own"],
)
def test_a_fault_is_found_by_its_check(checks: set[str], changes: list[tuple[str, str]], tmp_path: Path) -> None:
    run = run_with_changes("3.4", tmp_path / "work", *changes, images="256", batch_size="16", width="4", epochs="2")
    assert run.code == 0, run.output
    assert checks <= {check.id for check in run.verdict().checks if check.verdict == "failed"}, run.output


def mnist(folder: Path, count: int, side: int = 28, *, packed: bool = False) -> Path:
    """A set in MNIST's format, three classes that differ in brightness."""
    folder.mkdir()
    labels = bytes(index % 3 for index in range(count))
    chance = random.Random(0)
    pixels = b"".join(bytes(chance.randrange(20) + 100 * label for _ in range(side * side)) for label in labels)
    files = {
        "train-images-idx3-ubyte": struct.pack(">HBBIII", 0, 8, 3, count, side, side) + pixels,
        "train-labels-idx1-ubyte": struct.pack(">HBBI", 0, 8, 1, count) + labels,
    }
    for name, data in files.items():
        (folder / (name + ".gz" * packed)).write_bytes(gzip.compress(data) if packed else data)
    return folder


@pytest.mark.slow
def test_a_real_set_on_disk_on_three_ranks(tmp_path: Path) -> None:
    """100 pictures of 3 classes, 20 held out; a batch of 10 becomes 9, so that three ranks share it evenly."""
    folder = mnist(tmp_path / "a real set", 100, packed=True)
    run = run_ranks("3.4", 3, tmp_path / "work", data=str(folder), images="1000", batch_size="10", width="2", epochs="3")
    assert run.metrics["same_algorithms"], "two trainings are compared loss by loss, and cuDNN chooses anew each time"
    assert run.code == 0, run.output
    values = run.metrics
    assert (values["pictures"], values["classes"], values["trained_on"], values["held_out"]) == (str(folder), 3, 80, 20)
    assert [row["batch_per_rank"] for row in values["comparison"]] == [9, 3, 9]
    assert {"all-ranks", "same-data", "parameters-equal", "same-training"}.isdisjoint(words(run.verdict()))


@pytest.mark.slow
def test_where_one_rank_lacks_the_data_every_rank_ends_and_says_why(tmp_path: Path) -> None:
    """Otherwise rank 0 would wait for rank 1 until the time-out."""
    folder = mnist(tmp_path / "set", 60)
    run = run_with_changes(
        "3.4", tmp_path / "work", ("from_folder(args.data,", "from_folder(args.data * (rank == 0),"), data=str(folder)
    )
    assert run.code == 1
    assert run.output.count("rank 1: .: has no train-images-idx3-ubyte, packed by gzip or not") == 2, run.output
    assert "Traceback" not in run.output
    assert run.metrics == {}


@pytest.fixture(scope="module")
def pictures() -> object:
    sys.path.insert(0, str(FOLDERS.exercises / "03-parallel-computing"))
    try:
        return __import__("pictures")
    finally:
        sys.path.pop(0)


@pytest.mark.parametrize("packed", [False, True])
def test_pictures_are_framed_and_their_brightness_evened_out(pictures: object, packed: bool, tmp_path: Path) -> None:
    images, labels = pictures.from_folder(str(mnist(tmp_path / "set", 7, packed=packed)), 5)  # type: ignore[attr-defined]
    assert (tuple(images.shape), labels.tolist()) == ((5, 1, 32, 32), [0, 1, 2, 0, 1])
    assert (images.mean().abs().item(), images.std().item()) == (pytest.approx(0, abs=1e-5), pytest.approx(1, abs=1e-3))
    assert images[1, 0, :2].unique().numel() == 1, "the frame of two pixels is all of one brightness"


def test_generated_pictures_are_the_same_for_a_seed_and_others_for_another(pictures: object) -> None:
    first, again, other = (pictures.generate(20, seed) for seed in (0, 0, 1))  # type: ignore[attr-defined]
    assert tuple(first[0].shape) == (20, 3, 32, 32)
    assert all(bool((left == right).all()) for left, right in zip(first, again, strict=True))
    assert not bool((first[0] == other[0]).any())


IMAGES = struct.pack(">HBBIII", 0, 8, 3, 1, 2, 2)
LABELS = struct.pack(">HBBI", 0, 8, 1, 1) + b"\1"


@pytest.mark.parametrize(
    ("images", "labels", "reason"),
    [
        (b"", LABELS, "is not an idx file of unsigned bytes (it begins with nothing)"),
        (b"\x89PNG\r\n", LABELS, "is not an idx file of unsigned bytes (it begins with 89504e47)"),
        (IMAGES[:10], LABELS, "do not hold what its head promises, nothing"),
        (IMAGES + b"abc", LABELS, "19 bytes do not hold what its head promises, 1x2x2"),
        (IMAGES + b"abcd", LABELS[:7] + b"\2\0\1", "(1, 2, 2) images and (2,) labels do not belong together"),
        (struct.pack(">HBBIII", 0, 8, 3, 1, 33, 2) + b"a" * 66, LABELS, "pictures of 33x2 are larger than 32x32"),
        (struct.pack(">HBBIII", 0, 8, 3, 0, 2, 2), LABELS[:7] + b"\0", "do not belong together"),
        (IMAGES + b"abcd", LABELS, "1 pictures are too few, 4 are needed: take a smaller --batch-size"),
    ],
)
def test_files_that_hold_something_else_are_named(
    pictures: object, images: bytes, labels: bytes, reason: str, tmp_path: Path
) -> None:
    (tmp_path / "train-images-idx3-ubyte").write_bytes(images)
    (tmp_path / "train-labels-idx1-ubyte").write_bytes(labels)
    with pytest.raises(pictures.NoPictures) as error:  # type: ignore[attr-defined]
        pictures.from_folder(str(tmp_path), 10, 4)  # type: ignore[attr-defined]
    assert str(error.value).startswith(str(tmp_path))
    assert reason in str(error.value)


def test_a_broken_archive_is_named(pictures: object, tmp_path: Path) -> None:
    folder = mnist(tmp_path / "set", 3, packed=True)
    path = folder / "train-images-idx3-ubyte.gz"
    path.write_bytes(path.read_bytes()[:50])
    with pytest.raises(pictures.NoPictures, match=r"train-images-idx3-ubyte\.gz"):  # type: ignore[attr-defined]
        pictures.from_folder(str(folder), 3)  # type: ignore[attr-defined]


@pytest.mark.slow
def test_a_wrong_flag_is_refused_with_a_sentence(tmp_path: Path) -> None:
    _, script = lay_out("3.4", tmp_path / "work")
    process = start([sys.executable, str(script), "--width=0"], tmp_path, environment(tmp_path))
    output = wait(process)
    assert (process.returncode, "error:" in output, "Traceback" in output) == (2, True, False)
