"""The rules of module 7 against brute force, and the readers of its listings and images."""

from __future__ import annotations

import itertools

import pytest

from gpucourse.course.locate import find_course
from tests.unit.exercises.scripts import beside_the_script

mig = beside_the_script("07-hpc-systems", "mig")
cases = beside_the_script("07-hpc-systems", "cases")
topology = beside_the_script("07-hpc-systems", "topology")
images = beside_the_script("07-hpc-systems", "images")
manifests = beside_the_script("shared", "manifests")
pods = beside_the_script("07-hpc-systems", "pods")
shards = beside_the_script("07-hpc-systems", "shards")
containers = beside_the_script("07-hpc-systems", "containers")
crew = beside_the_script("shared", "crew")


@pytest.mark.parametrize("name", ["a100-80", "a30"])
def test_a_set_fits_one_gpu_exactly_where_some_starts_allow_it(name: str) -> None:
    card = mig.CARDS[name]
    for some in itertools.combinations_with_replacement(card.profiles, 3):
        names = [profile.name for profile in some]
        every = itertools.product(*(profile.starts for profile in some))
        fits = any(not mig.find_problems(card, names, [(0, start) for start in starts]) for starts in every)
        assert (len({gpu for gpu, _ in mig.place(card, names)}) == 1) == fits, names


def test_the_driver_table_of_an_a100_is_kept() -> None:
    card = mig.CARDS["a100-80"]
    starts = {profile.name: profile.starts for profile in card.profiles}
    assert starts["3g.40gb"] == (0, 4)
    assert starts["2g.20gb"] == (0, 2, 4)
    assert mig.find_problems(card, ["3g.40gb", "3g.40gb"], [(0, 0), (0, 2)]), "3g at 0 and 2 overlap, and 2 is forbidden"
    assert mig.find_problems(card, ["4g.40gb"], [(0, 4)]) == ["4g.40gb cannot begin at 4: 0"]
    assert list(mig.draw(card, ["2g.20gb", "3g.40gb"], [(0, 0), (0, 4)])) == ["GPU 0  2g 2g  .  . 3g 3g 3g 3g"]


def test_the_fewest_gpus_for_machines_are_those_of_all_divisions() -> None:
    profiles = {2: 3, 3: 2, 6: 1}

    def fewest(left: tuple[int, ...]) -> int:
        if not left:
            return 0
        first, *others = left
        best = len(left)
        for size, places in profiles.items():
            if size < first:
                continue
            fitting = [number for number, need in enumerate(others) if need <= size]
            for count in range(min(places - 1, len(fitting)) + 1):
                for chosen in itertools.combinations(fitting, count):
                    rest = tuple(need for number, need in enumerate(others) if number not in chosen)
                    best = min(best, 1 + fewest(rest))
        return best

    for needs in itertools.combinations_with_replacement([1, 2, 3, 5], 5):
        assert cases.gpus_needed(needs, profiles) == fewest(needs), needs


@pytest.mark.parametrize("puzzle", range(1, 11))
def test_composed_computers_have_symmetric_links(puzzle: int) -> None:
    links = topology.compose(puzzle).links
    assert all(links[a][b] == links[b][a] for a in range(8) for b in range(8))
    assert [links[a][a] for a in range(8)] == ["X"] * 8


def test_the_best_ring_of_a_hybrid_cube_has_two_nvlinks_in_each_hop() -> None:
    cube = topology.listings(1)[1].links
    assert topology.name_score(cube, topology.best_ring_score(cube)) == "8 x NV2"
    assert topology.name_score(cube, topology.ring_score(cube, range(8))) == "2 x SYS"


def test_delivered_pods_have_six_faults_with_the_hosts_ipc() -> None:
    delivered = (find_course({}).exercises / "07-hpc-systems/my_pods.yaml").read_text(encoding="utf-8")
    profiles = {profile.name: profile.gib for profile in mig.CARDS["a100-80"].profiles}
    words = [word for word, _ in pods.find_faults(manifests.read(delivered), profiles) if word != "schema"]
    assert sorted(words) == ["host-ipc", "image", "limits", "port", "profile", "replicas"]


def test_faults_of_images_are_found_where_they_stand() -> None:
    text = "FROM nvidia/cuda:12.9.0-base\nRUN apt-get update \\\n  && pip install torch\nARG API_KEY=1\nADD w.bin /w\nUSER 0\n"
    assert {(fault.word, fault.line) for fault in images.find_faults(text, "570.86")} == {
        ("cuda", 1), ("torch", 2), ("secret", 4), ("data", 5), ("root", 6),
    }  # fmt: skip
    assert [fault.word for fault in images.find_faults("FROM a@sha256:1\nUSER me\n", "550.1")] == []
    assert [fault.word for fault in images.find_faults("", "550.1")] == ["no-base", "root"]


def test_containers_are_refused_in_a_sentence_on_macos(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.platform", "darwin")
    with pytest.raises(SystemExit, match=r"only Linux has: run 7\.4 on a Linux machine, after gpucourse deploy 7"):
        containers.need_linux()
    with pytest.raises(SystemExit, match=r"on macOS .* cannot be forked: .*--set ranks_per_node=1"):
        crew.start(2)


def test_a_delivery_says_what_is_missing_wrong_and_out_of_order() -> None:
    good = [number.to_bytes(8, "little") + bytes(4) for number in range(6)]
    records = [body + shards.zlib.crc32(body).to_bytes(4, "little") for body in good]
    order = [3, 1, 0, 5, 4, 2]
    whole = shards.check_delivery(
        iter([[records[1], records[3]], [records[5], records[2]], [records[4], records[0]]]), order, 2, 3
    )
    assert (whole.missing, whole.twice, whole.wrong, whole.in_windows, whole.full_batches) == (0, 0, 0, False, True)
    bad = shards.check_delivery(iter([[records[3], records[3]], [bytes(16), records[0]]]), order, 2, 3)
    assert (bad.missing, bad.twice, bad.wrong) == (4, 1, 1)
