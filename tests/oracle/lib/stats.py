"""Bounds that come from the sample itself: each check is wrong at most once in a million runs.

A sampled share is a count of hits in a total. The checks below use the exact binomial distribution, so
they hold for ten samples as for a million; what they cannot do with few samples is notice a fault. So a
test samples until it has `needed()` of them, and fails with figures where it cannot get them.
"""
import math

FALSE_ALARM = 1e-6


def _log_pmf(k, n, p):
    return (math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)
            + k * math.log(p) + (n - k) * math.log1p(-p))


def _tail(n, p, start, step):
    """The sum of the binomial's terms from start on, outwards; start lies on that side of the mean."""
    total, first = 0.0, _log_pmf(start, n, p)
    k = start
    while 0 <= k <= n:
        term = math.exp(_log_pmf(k, n, p) - first)
        total += term
        if term < 1e-18 * total:
            break
        k += step
    return min(1.0, math.exp(first + math.log(total)))


def at_most(hits, total, share):
    """The probability of so few hits or fewer, where each sample hits with this share."""
    if hits >= total or share <= 0:
        return 1.0
    if share >= 1:
        return 0.0
    if hits > share * total:
        return 1 - (_tail(total, share, hits + 1, 1))
    return _tail(total, share, hits, -1)


def at_least(hits, total, share):
    """The probability of so many hits or more."""
    return at_most(total - hits, total, 1 - share)


def interval(hits, total, alarm=FALSE_ALARM):
    """(low, high): the shares that such a count does not rule out (Clopper and Pearson's)."""
    def solve(tail):
        low, high = 0.0, 1.0
        for _ in range(60):
            middle = (low + high) / 2
            low, high = (middle, high) if tail(middle) else (low, middle)
        return low

    bottom = solve(lambda p: at_least(hits, total, p) < alarm / 2) if hits else 0.0
    top = solve(lambda p: at_most(hits, total, p) >= alarm / 2) if hits < total else 1.0
    return bottom, top


def needed(share, delta, alarm=FALSE_ALARM):
    """How many samples show that a share is off by delta, nearly always."""
    z = 2 * math.sqrt(-math.log(alarm))  # both kinds of error, with room
    return math.ceil(z * z * max(share * (1 - share), delta) / (delta * delta))


def check_share(case, hits, total, share, slack=0.0, checks=1, msg=""):
    """The true share is this one, give or take slack. checks: how many of these the test makes."""
    low, high = interval(hits, total, FALSE_ALARM / checks)
    if high < share - slack or low > share + slack:
        case.fail(f"{msg}: {hits} of {total} samples ({hits / total:.4f}; between {low:.4f} and "
                  f"{high:.4f}), not {share:.4f} ± {slack}")


def check_more(case, hits, total, share, checks=1, msg=""):
    """The true share is at least this one."""
    if at_most(hits, total, share) < FALSE_ALARM / checks:
        case.fail(f"{msg}: {hits} of {total} samples ({hits / max(total, 1):.4f}), "
                  f"at least {share} wanted")


def check_less(case, hits, total, share, checks=1, msg=""):
    """The true share is at most this one."""
    if at_least(hits, total, share) < FALSE_ALARM / checks:
        case.fail(f"{msg}: {hits} of {total} samples ({hits / max(total, 1):.4f}), "
                  f"at most {share} wanted")


def check_same(case, ours, theirs, slack=0.0, checks=1, msg=""):
    """Two samples, each (hits, total), have the same true share, give or take slack."""
    a, b = (interval(*pair, FALSE_ALARM / (2 * checks)) for pair in (ours, theirs))
    if a[0] > b[1] + slack or b[0] > a[1] + slack:
        case.fail(f"{msg}: {ours[0]} of {ours[1]} samples against {theirs[0]} of {theirs[1]} "
                  f"({a[0]:.4f} to {a[1]:.4f}, and {b[0]:.4f} to {b[1]:.4f}; slack {slack})")
