"""The sampling steps against their definitions, on random logits and on hand-made ones."""

import ast
import math
import subprocess
import sys
from pathlib import Path
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import paperkiln.infer.sampling as module
from paperkiln.errors import PaperkilnError
from paperkiln.infer.generate import next_token
from paperkiln.infer.sampling import GREEDY, Sampling, choose, count_top_p, distribution, penalise

logit = st.floats(-30, 30, width=32)
# Few distinct values, so that ties are common.
logit_lists = st.lists(st.one_of(logit, st.sampled_from([-1.0, 0.0, 2.5])), min_size=1, max_size=40)
samplings = st.builds(
    Sampling,
    temperature=st.sampled_from([0.0, 1e-6, 0.7, 1.0, 5.0]),
    top_k=st.integers(0, 12),
    top_p=st.floats(0.01, 1.0),
    min_p=st.floats(0.0, 1.0),
    repetition_penalty=st.sampled_from([1.0, 1.3, 0.8, 4.0]),
    seed=st.just(0),
)


def rank(logits):
    return sorted(((x, i) for i, x in enumerate(logits)), key=lambda pair: (-pair[0], pair[1]))


@given(logit_lists)
def test_greedy_is_the_lowest_id_among_the_largest(logits):
    assert choose(logits, GREEDY, Random(0)) == logits.index(max(logits))
    assert choose(logits, Sampling(top_k=1), Random(5)) == logits.index(max(logits))


@given(logit_lists, samplings, st.sets(st.integers(0, 39)), st.integers(0, 9))
def test_numpy_shortlist_chooses_what_the_definition_chooses(logits, sampling, seen, seed):
    array = np.array(logits, np.float32)
    expected = choose(array.tolist(), sampling, Random(seed), seen=seen)
    assert next_token(array, sampling, Random(seed), seen) == expected


@given(logit_lists, samplings, st.integers(0, 2**32))
def test_choice_is_seeded_and_never_of_minus_infinity(logits, sampling, seed):
    logits = [-math.inf if i % 3 == 1 else x for i, x in enumerate(logits)]
    first = choose(logits, sampling, Random(seed))
    assert first == choose(logits, sampling, Random(seed))
    assert first % 3 != 1


@given(logit_lists, samplings.filter(lambda s: s.temperature > 0))
def test_distribution_is_the_definition(logits, sampling):
    kept = distribution(rank(logits), sampling)
    ids = [i for _, i in kept]
    assert math.isclose(math.fsum(p for p, _ in kept), 1, rel_tol=1e-9)
    assert ids == [i for _, i in rank(logits)][: len(ids)], "a prefix of the ranking"
    # Softmax over the top k, in float64 numpy.
    top = np.array([x for x, _ in rank(logits)][: sampling.top_k or None])
    p = np.exp((top - top[0]) / sampling.temperature)
    p /= p.sum()
    mass_before = np.cumsum(p) - p
    slack = 1e-9  # both sides round their sums
    assert all(mass_before[: len(ids)] < sampling.top_p + slack)
    assert all(p[: len(ids)] >= sampling.min_p * p[0] - slack)
    cut = len(ids) < len(p)
    assert (
        not cut
        or mass_before[len(ids)] >= sampling.top_p - slack
        or (p[len(ids)] < sampling.min_p * p[0] + slack)
    )


@given(logit_lists.filter(lambda x: len(x) > 1), st.floats(1.01, 5))
def test_penalty_only_lowers_what_was_seen(logits, penalty):
    seen = frozenset(range(0, len(logits), 2))
    after = dict((i, x) for x, i in penalise([(x, i) for i, x in enumerate(logits)], seen, penalty))
    for i, before in enumerate(logits):
        assert (after[i] <= before) if i in seen else (after[i] == before)


def test_steps_apply_in_the_documented_order():
    # Temperature before top-p: hot, the mass spreads and four tokens are needed for 0.9.
    logits = [math.log(p) for p in (0.6, 0.3, 0.06, 0.04)]
    cold, hot = Sampling(1.0, 0, 0.9), Sampling(5.0, 0, 0.9)
    assert len(distribution(rank(logits), cold)) == 2
    assert len(distribution(rank(logits), hot)) == 4
    # top-k before top-p: of the two left, the first holds 2/3 >= 0.65; of all four only 0.6.
    assert len(distribution(rank(logits), Sampling(1.0, 2, 0.65))) == 1
    assert len(distribution(rank(logits), Sampling(1.0, 0, 0.65))) == 2
    # Penalty before everything: the winner is seen, divided by 4, and top-1 is another token.
    assert choose([4.0, 3.0], Sampling(top_k=1, repetition_penalty=4), Random(0), seen={0}) == 1
    assert choose([-1.0, -3.0], Sampling(top_k=1, repetition_penalty=4), Random(0), seen={0}) == 1


def test_shortlist_reaches_past_what_the_penalty_moves_down():
    logits = np.array([10, 9, 8, 7, 6, 5], np.float32)
    for k, expected in [(1, {2}), (2, {2, 3})]:
        sampling = Sampling(5.0, k, repetition_penalty=4)
        assert {next_token(logits, sampling, Random(s), [0, 1]) for s in range(20)} == expected
    raised = Sampling(top_k=1, repetition_penalty=0.1)  # below 1 it moves up, from any depth
    assert next_token(logits, raised, Random(0), [5]) == 5


def test_ties_at_the_k_th_place_go_to_the_lowest_ids():
    kept = distribution(rank([1.0, 2.0, 2.0, 2.0]), Sampling(1.0, 2))
    assert [i for _, i in kept] == [1, 2]


def test_frequencies_follow_the_probabilities():
    logits = [math.log(p) for p in (0.5, 0.3, 0.2)]
    rng, n = Random(11), 20_000
    counts = [0, 0, 0]
    for _ in range(n):
        counts[choose(logits, Sampling(1.0, 0), rng)] += 1
    for count, p in zip(counts, (0.5, 0.3, 0.2), strict=True):
        assert abs(count / n - p) < 4 * math.sqrt(p * (1 - p) / n)


def test_top_p_keeps_the_token_that_reaches_it():
    assert count_top_p([0.5, 0.25, 0.25], 0.5) == 1
    assert count_top_p([0.5, 0.25, 0.25], 0.51) == 2
    assert count_top_p([0.5, 0.25, 0.25], 1.0) == 3


@pytest.mark.parametrize("bad", [math.nan, math.inf])
@pytest.mark.parametrize("sampling", [GREEDY, Sampling(), Sampling(top_k=0)])
def test_broken_logits_are_refused(bad, sampling):
    logits = [0.0, bad, 1.0]
    with pytest.raises(PaperkilnError, match="not finite"):
        choose(logits, sampling, Random(0))
    with pytest.raises(PaperkilnError, match="not finite"):
        next_token(np.array(logits, np.float32), sampling, Random(0), [])


def test_minus_infinity_is_never_chosen_and_nothing_left_is_an_error():
    assert choose([-math.inf, 0.0], Sampling(5.0, 0), Random(0)) == 1
    with pytest.raises(PaperkilnError, match="no token is left"):
        choose([-math.inf, -math.inf], Sampling(), Random(0))


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("temperature", -0.1), ("temperature", math.nan), ("temperature", math.inf),
        ("top_k", -1), ("top_k", 2.5), ("top_p", 0.0), ("top_p", 1.5), ("min_p", -0.1),
        ("min_p", 1.1), ("repetition_penalty", 0.0), ("repetition_penalty", math.inf),
    ],
)  # fmt: skip
def test_values_out_of_range_are_refused_by_name(field, value):
    with pytest.raises(PaperkilnError, match=f"sampling {field} = .*should be"):
        Sampling(**{field: value})


def test_module_needs_the_standard_library_only():
    tree = ast.parse(Path(module.__file__).read_text(encoding="utf-8"))
    imported = {node.module.split(".")[0] for node in ast.walk(tree)
                if isinstance(node, ast.ImportFrom)}  # fmt: skip
    assert imported <= set(sys.stdlib_module_names) | {"paperkiln"}
    code = "import sys, paperkiln.infer.sampling; print('numpy' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
