"""The checks of tests/oracle/lib/stats.py against sums by hand, and against samples of known shares."""
import math
import random
import unittest

import stats


class Stats(unittest.TestCase):
    def exact(self, hits, total, share):
        return sum(math.comb(total, k) * share ** k * (1 - share) ** (total - k)
                   for k in range(hits + 1))

    def test_tails_are_the_sums_of_the_binomial_distribution(self):
        for total in (1, 7, 40):
            for hits in range(total + 1):
                for share in (0.01, 0.3, 0.5, 0.97):
                    self.assertAlmostEqual(stats.at_most(hits, total, share),
                                           self.exact(hits, total, share), places=12)
                    self.assertAlmostEqual(stats.at_least(hits, total, share),
                                           1 - self.exact(hits - 1, total, share), places=12)

    def test_small_tails_keep_their_precision(self):
        self.assertAlmostEqual(math.log10(stats.at_most(0, 1000, 0.5)), -1000 * math.log10(2))
        self.assertEqual(stats.at_most(0, 5000, 0.5), 0.0)

    def test_shares_of_0_and_1_are_exact(self):
        self.assertEqual(stats.at_most(3, 10, 1), 0)
        self.assertEqual(stats.at_most(3, 10, 0), 1)
        self.assertEqual(stats.at_least(1, 10, 0), 0)
        self.assertEqual(stats.at_least(10, 10, 1), 1)

    def test_an_interval_holds_the_share_at_its_bounds(self):
        for hits, total in ((0, 50), (1, 50), (25, 50), (50, 50), (30000, 100000)):
            low, high = stats.interval(hits, total, 0.01)
            self.assertLessEqual(low, hits / total)
            self.assertGreaterEqual(high, hits / total)
            if hits:
                self.assertAlmostEqual(stats.at_least(hits, total, low), 0.005, places=6)
            if hits < total:
                self.assertAlmostEqual(stats.at_most(hits, total, high), 0.005, places=6)

    def test_alarms_are_as_rare_as_stated(self):
        """At a rate of one in fifty, where false alarms can be counted."""
        random.seed(1)
        intervals = [stats.interval(hits, 60, 0.02) for hits in range(61)]
        missed, runs = 0, 3000
        for _ in range(runs):
            low, high = intervals[sum(random.random() < 0.3 for _ in range(60))]
            missed += not low <= 0.3 <= high
        self.assertLessEqual(missed, 0.02 * runs)

    def test_a_wrong_share_is_noticed_with_the_samples_that_are_needed(self):
        for share, delta in ((0.5, 0.05), (0.02, 0.02), (0.98, 0.02)):
            total = stats.needed(share, delta)
            off = share + delta if share < 0.9 else share - delta
            with self.assertRaises(AssertionError):
                stats.check_share(self, round(off * total), total, share)
            stats.check_share(self, round(share * total), total, share)
            stats.check_share(self, round(off * total), total, share, slack=delta)

    def test_bounds_on_one_side_only_alarm_on_that_side(self):
        stats.check_more(self, 990, 1000, 0.98)
        stats.check_more(self, 970, 1000, 0.98)
        stats.check_less(self, 0, 1000, 0.02)
        with self.assertRaises(AssertionError):
            stats.check_more(self, 900, 1000, 0.98)
        with self.assertRaises(AssertionError):
            stats.check_less(self, 100, 1000, 0.02)

    def test_two_samples_are_the_same_or_not(self):
        stats.check_same(self, (480, 1000), (520, 1000))
        with self.assertRaises(AssertionError):
            stats.check_same(self, (300, 1000), (700, 1000))
        stats.check_same(self, (300, 1000), (700, 1000), slack=0.4)
