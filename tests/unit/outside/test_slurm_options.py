"""Reading the options of sbatch and srun, compared with what the real programs read."""

from __future__ import annotations

import pytest

from gpucourse.outside.slurm_options import OptionRefused, SlurmOptions, expand, read_file, read_sbatch_options, read_words


def of(*lines: str) -> SlurmOptions:
    return read_file("\n".join(["#!/bin/bash", *lines, "echo"]))


@pytest.mark.parametrize(
    ("line", "values"),
    [
        ("#SBATCH --partition=gpu # which queue", {"partition": "gpu"}),
        ("#SBATCH -p gpu -N2 -n 2", {"partition": "gpu", "nodes": "2", "ntasks": "2"}),
        ("#SBATCH--nodes 3", {"nodes": "3"}),
        ('#SBATCH -p "a b" --exclusive', {"partition": "a b", "exclusive": ""}),
        ("#SBATCH --part=gpu --arr=0-3", {"partition": "gpu", "array": "0-3"}),
        ("#SBATCH -HN 2", {"hold": "", "nodes": "2"}),
        ("  #SBATCH --nodes=2", {}),
        ("##SBATCH --nodes=2", {}),
        ("# SBATCH --nodes=2", {}),
    ],
)
def test_read_file_reads_a_line_as_sbatch_does(line: str, values: dict[str, str]) -> None:
    assert of(line).values == values


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("echo", "must begin with #!"),
        ("#!/bin/bash\r\necho\r\n", "DOS"),
        ("#!/bin/bash\n#SBATCH --partition=gpu which queue", "'which'"),
        ("#!/bin/bash\n#SBATCH --bogus=1", "no option --bogus"),
        ("#!/bin/bash\n#SBATCH --n=1", "short for several"),
        ("#!/bin/bash\n#SBATCH --nodes", "needs a value"),
        ("#!/bin/bash\n#SBATCH -y", "no option -y"),
        ('#!/bin/bash\n#SBATCH -p "gpu', "No closing quotation"),
    ],
)
def test_read_file_refuses_what_sbatch_refuses(text: str, reason: str) -> None:
    with pytest.raises(OptionRefused, match=reason) as error:
        read_file(text)
    assert error.value.line == (2 if "#SBATCH" in text else 1)


def test_read_file_stops_at_the_first_command() -> None:
    options = of("#SBATCH -N 2", "", "# a comment", "#SBATCH -p gpu", "set -e", "#SBATCH --time=1", "#sbatch --mem=1")
    assert options.values == {"nodes": "2", "partition": "gpu"}
    assert options.unread == [(7, "#SBATCH --time=1")]
    assert options.nearly == [(8, "#sbatch --mem=1")]


@pytest.mark.parametrize(
    ("words", "nodes", "tasks", "gpus"),
    [
        ("", 1, 1, 0),
        ("-N2 --gres=gpu:1", 2, 2, 1),
        ("--nodes=2-4 --ntasks-per-node=2 --gres=gpu:a100:4", 2, 4, 4),
        ("-n4 --ntasks-per-node=2 --gpus-per-task=1", 2, 4, 2),
        ("-N 2 -n 2 -G 2", 2, 2, 1),
        ("--gres gpu", 1, 1, 1),
        ("--gres=tmpdisk:5,gpu:t4:2", 1, 1, 2),
        ("--gpus-per-node=t4:3", 1, 1, 3),
    ],
)
def test_slurm_options_count_nodes_tasks_and_gpus(words: str, nodes: int, tasks: int, gpus: int) -> None:
    options = read_words(words.split())
    assert (options.nodes, options.tasks, options.gpus) == (nodes, tasks, gpus)


@pytest.mark.parametrize(
    ("time", "seconds"),
    [("10", 600), ("10:30", 630), ("00:10:00", 600), ("1-2", 93600), ("1-2:30", 95400), ("1-0:0:1", 86401)],
)
def test_seconds_of_a_time_limit(time: str, seconds: int) -> None:
    assert read_words(["-t", time]).seconds == seconds


@pytest.mark.parametrize("time", ["ten", "1:2:3:4", "-5", ""])
def test_seconds_refuses_what_is_no_time(time: str) -> None:
    with pytest.raises(OptionRefused, match="not a time"):
        _ = read_words([f"--time={time}"]).seconds


@pytest.mark.parametrize(
    ("array", "tasks"),
    [("0-3%2", ((0, 1, 2, 3), 2)), ("3,1", ((1, 3), 0)), ("0-6:2", ((0, 2, 4, 6), 0)), ("5", ((5,), 0))],
)
def test_array_of_tasks(array: str, tasks: tuple[tuple[int, ...], int]) -> None:
    assert read_words(["-a", array]).array == tasks


@pytest.mark.parametrize("array", ["3-0", "a", "0-3%x", "0..3", ""])
def test_array_refuses_what_is_none(array: str) -> None:
    with pytest.raises(OptionRefused, match="not an array"):
        _ = read_words([f"--array={array}"]).array


def test_read_words_ends_at_the_command_of_srun() -> None:
    options = read_words(["--pty", "-n1", "bash", "--login", "--gres=gpu:1"])
    assert (options.values, options.command) == ({"pty": "", "ntasks": "1"}, ("bash", "--login", "--gres=gpu:1"))


def test_expand_fills_in_names_of_files() -> None:
    assert expand("logs/%A_%3a-%N.%%out%q", {"A": "12", "a": "4", "N": "node1"}) == "logs/12_004-node1.%out%q"


def test_read_sbatch_options_leaves_out_the_lines_that_sbatch_refuses() -> None:
    text = "#!/bin/bash\n#SBATCH --bogus=1\n#SBATCH -N2\necho\n#SBATCH --ntasks=4\n"
    with pytest.raises(OptionRefused):
        read_file(text)
    assert read_sbatch_options(text).values == {"nodes": "2"}
