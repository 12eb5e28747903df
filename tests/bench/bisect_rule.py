# SPDX-License-Identifier: GPL-2.0-or-later
"""How often a bisection's rule gives a step the wrong class, and how many boots it takes: `python -m tests.bench.bisect_rule 1000`.

Normal log ratios. Both ends and a commit of 0, 1 and half of the ends' difference, measured as the verb does, with the good
end's samples in common. A class is wrong where the commit's true change lies on the other side of the threshold, which is half-way
between the ends as they were measured.
"""

from __future__ import annotations

import sys
from collections import Counter

import numpy as np

from kpatch_ci.model.bisect import Change, Class
from kpatch_ci.pipeline.bisect import rule
from kpatch_ci.stats import estimate

FIRST, MOST = 6, 48
BETTER = "lower"


def change(before: np.ndarray, after: np.ndarray) -> Change:
    """As the judge makes it of one run a boot."""
    found = estimate(list(before), list(after), BETTER, rule.CONFIDENCE)
    return Change(found.change_percent, found.ci_percent, len(before), rule.CONFIDENCE, found.ci_method)


def trial(random: np.random.Generator, effect: float, spread: float, share: float) -> tuple[str, int, bool]:
    """The class of one commit that has ``share`` of the ends' difference, the boots that it took, and whether it is wrong."""
    good, bad, other = (np.exp(at + random.normal(0, spread, MOST)) for at in (0.0, effect, share * effect))
    boots: int | None = FIRST
    while boots is not None:
        ends = change(good[:boots], bad[:boots])
        if rule.separated(ends):
            break
        boots = rule.next_look(boots, MOST)
    if boots is None:
        return "no difference", MOST, False
    sd = rule.spread(rule.effects(list(good[:boots]), list(bad[:boots]), BETTER))
    half = rule.half_way(ends.change_percent, BETTER)
    looked = rule.boots_needed(rule.to_log(ends.change_percent, BETTER), sd, boots, MOST)
    for _ in range(rule.LOOKS):
        cls = rule.side(change(good[:looked], other[:looked]), half)
        more = rule.next_look(looked, MOST)
        if cls or more is None:
            truth = Class.BAD if share * effect > -rule.to_log(half, BETTER) else Class.GOOD
            return str(cls or "undecided"), looked, cls is not None and cls is not truth
        looked = more
    return "undecided", looked, False


def main(trials: int) -> None:
    """A line for each setting."""
    random = np.random.default_rng(7)
    for effect, spread in ((0.2, 0.01), (0.2, 0.02), (0.2, 0.04), (0.1, 0.03)):
        for share in (0.0, 1.0, 0.5):
            found = [trial(random, effect, spread, share) for _ in range(trials)]
            classes = dict(Counter(cls for cls, _, _ in found))
            boots, wrong = sum(count for _, count, _ in found) / trials, sum(error for _, _, error in found)
            said = f"difference {effect}, spread {spread}, share {share}: {classes}, {wrong} wrong, {boots:.1f} boots"
            print(said, flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]))
