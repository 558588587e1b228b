"""How long operations take on a server that needs the same time for each: the queue M/D/1.

Operations arrive as a Poisson process of rate r and are served one after the other, each in the time D = 1/N. With p_j
the probability of j operations in the system, and Q_i the sum of p_0 to p_(i+1), the waiting time W has

    P(W <= t) = exp(-r (kD - t)) sum_{j=0}^{k-1} Q_(k-1-j) (r (kD - t))^j / j!    for (k-1) D <= t < kD.

Source: Franx, A simple solution for the M/D/c waiting time distribution, Operations Research Letters 29 (2001), here
for one server. All terms are positive, so it keeps its precision where Erlang's formula of 1909, whose terms alternate,
loses it. The p_j follow from the balance of the steps from below j to j and back, as in any queue M/G/1 (Kendall 1953).
"""

import math
from itertools import accumulate


class Queue:
    """A queue M/D/1.

    Attributes:
        load: operations per second that arrive.
        capacity: operations per second that can be served.

    """

    def __init__(self, load: float, capacity: float) -> None:
        """Raise ValueError if the queue has no stationary state."""
        if not 0 < load < capacity:
            raise ValueError(f"a queue of {capacity:g} operations per second grows without end under {load:g}")
        self.load = load
        self.capacity = capacity
        self._arrivals: list[float] = []
        self._states = [1 - self.utilisation]

    @property
    def utilisation(self) -> float:
        return self.load / self.capacity

    @property
    def mean_latency(self) -> float:
        """The mean time from arrival to completion, in seconds (Pollaczek and Khinchine)."""
        return (1 + self.utilisation / (2 * (1 - self.utilisation))) / self.capacity

    def share_within(self, latency: float) -> float:
        """Return the share of operations that complete within this time, in seconds."""
        waited = latency * self.capacity - 1
        if waited < 0:
            return 0.0
        services = math.floor(waited) + 1
        expected = self.utilisation * (services - waited)
        below = list(accumulate(self._state(number) for number in range(services + 1)))
        term, share = math.exp(-expected), 0.0
        for number in range(services):
            share += term * below[services - number]
            term *= expected / (number + 1)
        return min(share, 1.0)

    def percentile(self, percent: float) -> float:
        """Return the time within which this part of the operations completes, in seconds."""
        low = high = 1 / self.capacity
        while self.share_within(high) < percent / 100:
            low, high = high, 2 * high
        while low < (middle := (low + high) / 2) < high:
            if self.share_within(middle) < percent / 100:
                low = middle
            else:
                high = middle
        return high

    def _state(self, number: int) -> float:
        """Return the probability of that many operations in the system."""
        for state in range(len(self._states), number + 1):
            flow = self._states[0] * self._more(state - 1)
            flow += math.fsum(self._states[below] * self._more(state - below) for below in range(1, state))
            self._states.append(flow / math.exp(-self.utilisation))
        return self._states[number]

    def _more(self, number: int) -> float:
        """Return the probability that more than that many operations arrive during one service."""
        while len(self._arrivals) <= number:
            first = len(self._arrivals) + 1
            # From the first term on, which is the largest: 1 minus a sum would lose small probabilities.
            term = math.exp(-self.utilisation + first * math.log(self.utilisation) - math.lgamma(first + 1))
            tail = 0.0
            while term > tail * 1e-17:
                tail += term
                first += 1
                term *= self.utilisation / first
            self._arrivals.append(tail)
        return self._arrivals[number]
