"""The supermarket model, JSQ(d): each job looks at d of n queues and joins a shortest of these."""

import math
from dataclasses import dataclass, field, fields

import numpy as np

from supermarket import policies
from supermarket.service import Exponential, ServiceLaw
from supermarket.validation import (
    EXACT_MAX,
    MOST_QUEUES,
    ParameterError,
    arrival_rate,
    choice,
    instance,
    integer,
    real,
)

__all__ = ["Supermarket"]

DISCIPLINES = ("fifo", "ps", "lifo")


@dataclass(frozen=True, repr=False)
class Supermarket:
    """The supermarket model with n queues, d choices and arrival rate lam.

    It is checked when it is made, never changes, and can be a key of a dict. With
    `dataclasses.replace` comes the same model with another number.

    Attributes
    ----------
    n : int
        Number of queues, from 1 to 4e18; or infinity, for a limit of many queues.
    d : int
        Number of queues that an arrival looks at, at least 1.
    lam : float
        Arrivals per queue and unit of time, above 0. Equilibrium needs a `load` below 1.
    replacement : bool
        Whether the d queues are chosen with replacement (as in [1]_) or distinct (as in [2]_).
    policy : str
        What joins where, by the name of a file in `supermarket.policies`. "jsq": a shortest of the
        d queues is joined. "memory": a shortest of these and of one that is remembered.
    service : ServiceLaw
        Law of the service time; exponential of mean 1, the unit of time, unless given.
    discipline : {"fifo", "ps", "lifo"}
        Service in order of arrival, processor sharing, or last come first served, where a new job
        interrupts the one in service, which later goes on where it stopped.

    References
    ----------
    .. [1] G. Brightwell and M. Luczak, "The supermarket model with arrival rate tending to one",
       arXiv:1201.5523, section 1.
    .. [2] M. Bramson, Y. Lu and B. Prabhakar, "Decay of tails at equilibrium for FIFO join the
       shortest queue networks", Annals of Applied Probability 23 (2013) 1841, arXiv:1106.4582.

    Examples
    --------
    >>> from dataclasses import replace
    >>> from supermarket import Supermarket
    >>> shop = Supermarket(n=1000, d=2, lam=0.9)
    >>> shop, replace(shop, d=3).d, shop.load
    (Supermarket(n=1000, d=2, lam=0.9), 3, 0.9)
    """

    n: float
    d: int
    lam: float
    replacement: bool = True
    policy: str = "jsq"
    service: ServiceLaw = field(default=Exponential())
    discipline: str = "fifo"

    def __post_init__(self) -> None:
        many = isinstance(self.n, float) and self.n == math.inf
        self._set("n", math.inf if many else integer("n", self.n, 1, MOST_QUEUES))
        self._set("d", integer("d", self.d, 1, EXACT_MAX))
        self._set("lam", real("lam", self.lam, 0.0, open_low=True))
        if isinstance(self.replacement, np.bool_):
            self._set("replacement", bool(self.replacement))
        choice("replacement", self.replacement, (True, False))
        choice("discipline", self.discipline, DISCIPLINES)
        choice("policy", self.policy, policies.names())
        instance(
            "service", self.service, ServiceLaw,
            "use a law of supermarket.service, such as Exponential() or Lomax(2.5)",
        )  # fmt: skip
        if not self.replacement and not policies.named(self.policy).distinct:
            raise ParameterError(
                f"policy = {self.policy!r} is known for choices with replacement only."
            )
        if not self.replacement and self.d > self.n:
            raise ParameterError(
                f"d = {self.d} distinct queues cannot be chosen among n = {self.n}: "
                "choose d <= n, or replacement=True."
            )

    def _set(self, name: str, value: object) -> None:
        object.__setattr__(self, name, value)

    def __repr__(self) -> str:
        """Return n, d, lam and what is not as usual."""
        told = [
            f"{one.name}={getattr(self, one.name)!r}"
            for one in fields(self)
            if one.name in ("n", "d", "lam") or getattr(self, one.name) != one.default
        ]
        return f"Supermarket({', '.join(told)})"

    @property
    def load(self) -> float:
        """Share of busy servers in equilibrium: ``lam * service.mean``."""
        return self.lam * self.service.mean

    @property
    def is_exponential(self) -> bool:
        """Whether service is exponential of mean 1: then the lengths are a Markov chain."""
        return self.service == Exponential()


def supermarket_of(model: object) -> Supermarket:
    """Return the model, or refuse what is none.

    Raises
    ------
    ParameterError
        If it is not a `Supermarket`.
    """
    return instance("model", model, Supermarket, "give a Supermarket(n, d, lam)")


def numbers_of(
    model: Supermarket,
    policy: str = "jsq",
    *,
    fewest: int = 1,
    finite: bool = False,
    distinct: bool = True,
) -> tuple[float, int, float]:
    """Return n, d and lam of a model with exponential service that has an equilibrium.

    Parameters
    ----------
    model : Supermarket
    policy : str
        What joins where.
    fewest : int
        Fewest choices.
    finite : bool
        Whether n must be finite.
    distinct : bool
        Whether distinct choices will do.

    Raises
    ------
    ParameterError
        If the model is another.
    """
    others = supermarket_of(model).policy != policy or not model.is_exponential
    if others or not (distinct or model.replacement):
        choices = "" if distinct else ", choices with replacement"
        raise ParameterError(
            f"{model} is not what this is known for: use exponential service of mean 1, "
            f"policy={policy!r}{choices}."
        )
    if finite and model.n == math.inf:
        raise ParameterError("n = inf is a limit, and this depends on n: give a number.")
    return model.n, integer("d", model.d, fewest), arrival_rate(model.lam)
