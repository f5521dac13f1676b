"""The exchange of rows among ranks: what arrives, what goes back, what is counted, and sizes that do not fit."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from gpucourse.course.locate import find_course
from tests.system.exercising import environment, needs_torch, start, wait

pytestmark = needs_torch
SCRIPT = """
import json, sys
sys.path.append(sys.argv[1])
import crew
import torch
torch.set_num_threads(1)
crew.start(3)
import ranks
from exchange import Exchange
world = ranks.join()
exchange = Exchange(world.rank, 3)
send = [[1, 2, 0], [0, 0, 3], [1, 0, 0]][world.rank]
receive = [[1, 0, 1], [2, 0, 0], [0, 3, 0]][world.rank]
rows = (torch.arange(2.0 * sum(send)).view(-1, 2) + 100 * world.rank).double().requires_grad_()
arrived = exchange(rows, send, receive)
(arrived * (world.rank + 1)).sum().backward()
texts = []
for sizes in ((send, send), ([9, 0, 0], receive), ([1], receive)):
    try:
        exchange(rows, *sizes)
    except ValueError as error:
        texts.append(str(error))
counts = exchange.forward_bytes, exchange.backward_bytes
everyone = world.gather([arrived[:, 0].tolist(), rows.grad[:, 0].tolist(), *counts, texts])
if world.rank == 0:
    with open(sys.argv[2], "w") as file:
        json.dump(everyone, file)
"""


def test_exchange_moves_rows_and_gradients_and_counts_what_leaves(tmp_path: Path) -> None:
    script, result = tmp_path / "exchanging.py", tmp_path / "result.json"
    script.write_text(SCRIPT, encoding="utf-8")
    shared = str(find_course({}).exercises / "shared")
    process = start([sys.executable, script.name, shared, str(result)], tmp_path, environment(tmp_path))
    output = wait(process)
    assert process.returncode == 0, output
    arrived, gradients, forward_bytes, backward_bytes, texts = zip(*json.loads(result.read_text(encoding="utf-8")), strict=True)
    assert arrived == ([0, 200], [2, 4], [100, 102, 104])
    assert gradients == ([1, 2, 2], [3, 3, 3], [1]), "each row's gradient is that of the rank which used it"
    assert forward_bytes == ([32], [48], [16]), "row 0 of rank 0 stays at home; a row has 16 bytes"
    assert backward_bytes == ([16], [32], [48])
    assert texts[0] == texts[1] == texts[2], "every rank ends with the same words"
    assert texts[0][0] == "rank 0 expects 2 rows from rank 1, which sends 0"
    assert texts[0][1] == "rank 0 has 3 rows, and its sizes to send add up to 9"
    assert texts[0][2] == "rank 0 needs 3 sizes to send and 3 to receive, none below 0"
