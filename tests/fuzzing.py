"""Odd calls of public names, each in a process of its own: what `test_fuzz` plays with.

A call is text. Its arguments, those of the constructors inside it too, are replaced by odd values,
which are texts as well: so what fails is printed as one line that can be pasted. The server below
makes each call in a fork, with `CPU_SECONDS` of time and `BYTES` of memory: a hang ends a fork, not
the session.
"""

import ast
import contextlib
import json
import math
import os
import resource
import select
import signal
import subprocess
import sys
import warnings
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from pathlib import Path

import numpy as np

CPU_SECONDS, BYTES, WALL_SECONDS = 10, 2 * 10**9, 120
LONGEST = 500  # letters of a sentence

MADE = {"CavityEquilibrium", "Coupling", "JacksonNetwork", "Run", "ServerPools", "SmallChain"}
NO_CALLS = {"ParameterError", "ServiceLaw"}  # an exception, and an abstract class
PATH = "times=[0.0, 0.4, 0.8, 1.2, 1.6, 2.0]"
SMALL = "Supermarket(n=20, d=2, lam=0.7, replacement=True, policy='jsq')"
MEMORY = "Supermarket(n=20, d=1, lam=0.7, policy='memory')"
LAW = "Supermarket(n=20, d=2, lam=0.7, replacement=False, service=Lomax(beta=2.5))"
POOLS = "server_pools(alpha=[0.5, 0.5], utilities=[[4.0, 2.0], [3.0, 1.0]], levels=2)"
MANY = "server_pools(alpha=[1.0], utilities=[lambda x: -x * x], levels=40)"
NET = ("jackson_network(arrivals=[0.5, 0.0], routing=[[0.0, 0.6], [0.2, 0.0]], choices=[2, 1], "
       "service=[1.0, 1.5], names=['in', 'out'], n=20, replacement=True)")  # fmt: skip
RUN = f"simulate({SMALL}, Schedule(horizon=8, batches=16, times=[1, 2, 5]), seed=1)"
JOBS = f"simulate({LAW}, Schedule(horizon=8, batches=16), seed=1)"
EVERY = f"simulate({SMALL}, Schedule(4, batches=2, times=[1, 3]), seed=1)"
CAVITY = f"cavity(model={LAW}, levels=8, method='auto', arithmetic='auto')"
CHAIN = "small_chain(model=Supermarket(n=3, d=2, lam=0.5), longest=4)"
SOFT, HARD = "exponential(alpha=1.0, c=2.0)", "ReflectedOverflow(barrier=1.0)"
PAIR = (f"couple(model={SMALL}, schedule=Schedule(4, times=[1, 3]), starts=('empty', [1.0, 1.0]), "
        "seed=1, by='rank', engine='auto', copies=4, threads=1)")  # fmt: skip
MEASURE = "confidence=0.9, among=2)"
SERIES = "WAVE"
STATES = "counts=[[20, 14, 7, 1, 0], [20, 15, 8, 0, 0]]"

# Valid calls, by what their results must be: numbers without a NaN; "nan" where one is documented;
# "shares" in [0, 1]; "tail": shares that never increase; "law": shares with sum 1; "positive";
# "logs": logarithms of a tail.
CALLS = {
    "": [
        f"autocorrelation_time(series={SERIES}, spacing=0.5, {MEASURE}",
        f"forgetting_rate(copies=[{SERIES}, SQUARE], lag=1, spacing=0.5, {MEASURE}",
        f"controlled_interval(batches={SERIES}, controls=[SQUARE], relaxations=40.0, {MEASURE}",
        "job_controls(busy=[0.5, 0.7], jobs=[1.0, 1.4], n=20, lam=0.7, centre=1.1)",
        "Computed(estimate=2.0, low=1.0, high=3.0)",
        "Computed.within(estimate=2.0, error=0.5)",
        "Interval(estimate=0.5, low=0.4, high=0.6, confidence=0.9)",
        "Interval(0.5, 0.4, 0.6, 0.9).without(why='short')",
        f"batch_interval(batches={SERIES}, snapshots={SERIES}, relaxations=40.0, {MEASURE}",
        f"mean_interval(samples=[1.0, 2.0, 4.0], {MEASURE}",
        f"fit_interval(estimate=2.0, error=0.1, freedom=4, {MEASURE}",
        f"quantile_interval(series={SERIES}, level=0.5, looks=60.0, {MEASURE}",
        "limit_of(sequence=[1.0, 1.5, 1.75, 1.875, 1.9375], rounding=1e-15)",
        "characteristic_roots(beta=2.5, d=3)",
        "q_exponent(beta=2.5, d=2)",
        "critical_beta(d=3)",
        "log_beta(x=0.5, n=100, d=5, replacement=False)",
        f"effective_barrier(soft={SOFT})",
        SOFT,
        "soft_barrier(model=Supermarket(n=10000, d=100, lam=0.95), k=1)",
        "linear_covariance(alpha=1.0, k=2, time=1.5)",
        f"paths(overflow={SOFT}, times=[0.5, 1.0], seed=1, replicas=3, k=1, start=(0.0, 0.0), "
        "step=0.1)",
        f"paths(overflow={HARD}, times=[0.5, 1.0], seed=1, replicas=3, k=1, start=(0.0, 0.0), "
        "step=0.1)",
        "paths(overflow=LinearOverflow(alpha=1.0), times=[0.5, 1.0], seed=1, replicas=3)",
        f"driven(overflow={SOFT}, times=[0.0, 1.0], noise=[0.0, 0.5], seed=1, k=1, "
        "start=(0.0, 0.0), step=0.1)",
        f"driven(overflow={HARD}, times=[0.0, 1.0], noise=[0.0, 0.5], seed=1)",
        "job_noise(counts=[[100, 90, 10], [100, 91, 9]], times=[0.0, 1.0], lam=0.9)",
        "three_limits(alpha=1.0, c=2.0)",
        "moments_at(overflow=LinearOverflow(alpha=1.0), time=1.0, k=2)",
        "mean_at(overflow=LinearOverflow(alpha=1.0), time=1.0, k=2)",
        "reflect(path=[0.0, 2.0, 1.0], barrier=1.0)",
        "chain_moments(model=Supermarket(n=10000, d=200, lam=0.98))",
        f"stationary_moments(overflow={SOFT}, spacing=0.2)",
        "stationary_moments(overflow=LinearOverflow(alpha=1.0))",
        f"busy_control(model={SMALL})",
        f"mean_queue_correction(model={SMALL})",
        f"profile_correction(model={SMALL}, levels=4)",
        f"refined_mean_field(model={SMALL}, levels=4)",
        f"drift(model={SMALL}, {STATES})",
        f"drift_matrix(model={SMALL}, k=3)",
        f"drift_slopes(model={SMALL}, counts=[[20, 14, 7, 0], [20, 15, 8, 0], [20, 16, 8, 0], "
        f"[20, 11, 3, 0]], functions=modes(model={SMALL}, k=1))",
        f"modes(model={SMALL}, k=2)",
        f"modes(model={SMALL}, k=2).values({STATES})",
        f"modes(model={SMALL}, k=2).drifts({STATES}, lam=0.7)",
        f"modes_at_fixed_point(model={SMALL}, k=2)",
        f"stationary_covariance(model={SMALL})",
        f"hypotheses(model={SMALL}, eps=0.1, phi=1.0)",
        "largest_delta(alpha=0.6, beta=0.45)",
        "length_counts(model=Supermarket(n=10**6, d=50, lam=0.999), eps=0.1)",
        "shorter_counts(model=Supermarket(n=10**6, d=50, lam=0.999), eps=0.1)",
        f"log_rate_bound(model={SMALL}, eps=0.1)",
        f"log_rate_of_longer(model={SMALL}, counts=[20, 14, 7, 1, 0])",
        "power_case(n=10000, alpha=0.5, beta=0.4)",
        "power_case(n=10000, alpha=0.5, beta=0.4).model",
        "few_choices(n=10**8, alpha=0.5, theta=2.5, gamma=0.12)",
        "slow_load(n=10**6, alpha=3.0, beta=2.6)",
        "slowest_load(n=10**10, large=1000.0, small=45.0)",
        SMALL,
        f"PoolSystem(pools={MANY}, n=4, rho=2.5, policy='jlmu', tolerance=0.1, threshold=1)",
        POOLS,
        f"{POOLS}.utility(q=[[0.5, 0.2], [0.5, 0.0]])",
        f"{POOLS}.sizes(n=4)",
        f"{POOLS}.assignment(n=4, tasks=3)",
        NET,
        f"{NET}.profiles(start=[[1.0, 0.5], [1.0]])",
        f"optimum(pools={POOLS}, rho=0.75)",
        f"best_utility(pools={POOLS}, rho=[0.5, 0.75])",
        f"level_control(run={RUN[:-1]}, start='fixed point'), level=1)".replace("16", "2"),
        f"over_batches(run={EVERY}, values=[1.0, 2.0])",
        f"pair_control(run={EVERY}, first=1, second=2)",
        "bands(counts=[10**9, 7 * 10**8, 3 * 10**8], d=2, lam=0.7, replacement=True)",
        f"simulate(model={SMALL}, schedule=Schedule(horizon=4, warmup=1, batches=2, times=[1, 2], "
        "unit='service', max_hours=1e-3), seed=1, start='empty', engine='scan', copies=2, "
        "threads=1)",
        f"simulate(model={SMALL}, schedule=4, seed=1, start=[1.0, 0.5], engine='table')",
        f"simulate(model={SMALL}, schedule=Schedule(200, unit='steps'), seed=1, engine='ranks')",
        f"simulate(model={SMALL}, schedule=4, seed=1, engine='lanes', copies=3)",
        f"simulate(model={SMALL}, schedule=4, seed=1, engine='bursts')",
        f"simulate(model={SMALL}, schedule=4, seed=1, start=[1] * 20, engine='labelled')",
        f"simulate(model={MEMORY}, schedule=4, seed=1, start='fixed point', engine='auto')",
        f"simulate(model={LAW}, schedule=4, seed=1, start='equilibrium', engine='jobs')",
        f"simulate(model={LAW}, schedule=4, seed=1, start=([1] * 20, [1.0] * 20))",
        "simulate(model=Supermarket(20, 2, 0.7, discipline='ps'), schedule=4, seed=1)",
        f"simulate(model={NET}, schedule=Schedule(4, times=[1]), seed=1, start=[[1.0], [1.0]])",
        f"simulate(model=PoolSystem(pools={MANY}, n=10, rho=2.5, policy='threshold'), schedule=4, "
        "seed=1, start='optimum')",
        "leap(model=Supermarket(n=10**6, d=30, lam=0.98), schedule=4, seed=1, step=0.5, "
        "start='fixed point')",
        f"run_points(function=simulate, points=[dict(model={SMALL}, schedule=2)], seed=1, "
        "threads=1, done=None)",
        f"outside_interval(run={RUN}, low=1, high=9, {MEASURE}",
        PAIR,
        f"couple(model=({SMALL}, {SMALL}), schedule=4, starts=([0] * 20, [2] * 20), seed=1, "
        "by='queue')",
        f"decay_rate(runs={PAIR}, {MEASURE}",
        "sorted_lengths(counts=[4, 3, 1, 0])",
        "try_every_move(n=2, d=(2, 1), longest=2, by='rank', order='tails', thinned=False)",
        "try_every_move(n=2, d=(2, 1), longest=2, by='quantile', order='distances')",
        f"equilibrium_draws(model={SMALL}, draws=2, seed=1, max_hours=1e-3)",
        "Schedule(horizon=200, warmup=10, batches=4, times=[0, 1], unit='service', max_hours=1e-3)",
        "Schedule(horizon=200, warmup=10, batches=4, times=[0, 1], unit='steps')",
        f"{RUN}['profile']",
        f"{RUN}.relaxations(relaxation_time=2.0)",
        f"{RUN}.interval(quantity='profile', confidence=0.9, at=1, among=2, relaxation_time=0.1)",
        f"{RUN}.interval(quantity='length', at=1)",
        f"{RUN}.interval(quantity='maximum', at=[3, 4])",
        f"{RUN}.interval(quantity='mean queue')",
        f"{JOBS}.interval(quantity='sojourn')",
        f"{JOBS}.interval(quantity='sojourn survival')",
        f"{JOBS}.interval(quantity='covariance')",
        f"{JOBS}.covariance_batches()",
        f"{RUN}.max_queue_range(share=0.9)",
        f"{CAVITY}.met",
        f"{CAVITY}.draw(rng=RNG(), size=3)",
        f"{CAVITY}.error",
        f"couple(model={SMALL}, schedule=4, starts=('empty', [1.0]), seed=1).times",
        f"{CHAIN}.index(lengths=[2, 1, 0])",
        f"list({CHAIN}.laws(start=[0, 0, 0], steps=[0, 2]))",
        f"{CHAIN}.gap",
        f"{CHAIN}.equilibrium_error",
        f"small_coupling(chain={CHAIN}, by='rank').rate",
        "simulate.check(model=Supermarket(n=20, d=2, lam=0.7), schedule=4, seed=1) and 0",
    ],
    "positive": [
        f"count_interval(events=3, exposure=10.0, {MEASURE}",
        f"mean_queue(model={SMALL})",
        f"mean_sojourn(model={SMALL})",
        f"relaxation_time(model={SMALL})",
        f"memory_relaxation_time(model={MEMORY})",
        "memory_exponent(d=2)",
        f"memory_max_queue(model={MEMORY})",
        f"k_lambda_d(model={SMALL})",
        f"max_queue_hypothesis(model={SMALL})",
        f"mean_of_longer(model={SMALL}, k=3)",
        "fewest_queues(eps=0.1, phi=1.0)",
        "levels_of_few_choices(n=10**6, gamma=0.3)",
        "power_case(10000, 0.5, 0.4).relaxation_time",
        "power_law_exponent(beta=1.5, d=2)",
        "power_law_constant(beta=1.5, c=0.7, d=2, lam=0.7)",
        "critical_decay_rate(c=1.0, lam=0.9, d=3)",
        "growth(beta=2.5, d=3)",
        "recursion(beta=3.0, d=2, levels=6)",
        "overflow_lag(lam=1.5, d=1000.0)",
        "holes_bound(rho=2.0)",
        f"{CAVITY}.mean_queue",
        f"{CAVITY}.mean_sojourn",
        "two_level_rates(model=Supermarket(n=200, d=20, lam=0.97), spread=3.0)",
        f"smallest_eps(model={SMALL}, {STATES})",
        f"smallest_eps_of_lengths(model={SMALL}, {STATES})",
    ],
    "nan": [
        f"{CAVITY}.mean_residual",
        f"mean_sojourn_fifo(model={LAW})",
        f"{JOBS}.mean_sojourn",
        f"{JOBS}.sojourn_survival",
        f"couple(model={SMALL}, schedule=4, starts=('empty', [1.0]), seed=1).time",
    ],
    "shares": [
        f"share_interval(seen=3.0, trials=10.0, {MEASURE}",
        f"time_share_interval(batches=[0.5, 1.0], relaxations=40.0, {MEASURE}",
        f"share_with(model={LAW}, jobs=3)",
        f"cavity(model=Supermarket(9, 2, 0.7), levels=9).sojourn_survival({PATH})",
        f"cavity(Supermarket(9, 2, 0.7, service=Deterministic()), 9).sojourn_survival({PATH})",
        f"in_good_set(model={SMALL}, {STATES}, eps=0.1)",
        f"linear_good_set_share(model={SMALL}, eps=0.1, independent=False)",
        "waiting_share(model=Supermarket(n=10000, d=500, lam=0.98))",
        "barrier_rate(n=10**4, d=5000, alpha=1.0, k=1)",
        "critical_arrival_rate(n=10**8, d=1000, alpha=1.0, k=1)",
        f"{CHAIN}.mixing(start=[0, 0, 0], steps=[0, 2, 5])",
        f"{CHAIN}.distance(law=EVEN)",
        f"small_coupling(chain={CHAIN}, by='queue').apart(steps=[0, 3])",
    ],
    "rising": [
        f"fixed_point_shorter(model={SMALL}, levels=3)",
        f"leading_shorter(model={SMALL}, k=3)",
        f"linear_shorter(model={SMALL}, k=3)",
    ],
    "tail": [
        f"fixed_point(model={SMALL}, levels=3)",
        f"trajectory(model={SMALL}, {PATH}, start=[1.0, 0.5], levels=6)",
        f"trajectory(model={SMALL}, {PATH})",
        f"memory_trajectory(model={MEMORY}, {PATH}, start=[1.0, 0.5])",
        f"network_trajectory(network={NET}, {PATH}, start=[[1.0, 0.5], [1.0]])",
        f"network_fixed_point(network={NET}, levels=3)",
        "near_equilibrium(model=Supermarket(n=10000, d=100, lam=0.95), levels=3)",
        f"fluid_limit(lam=1.5, {PATH}, start=[1.0, 0.5]).values",
        f"pools_fluid_limit(pools={POOLS}, rho=0.75, {PATH}, start=[[0.5, 0.0], [0.0, 0.0]])",
        f"{CAVITY}.tail",
        f"cavity(model=Supermarket({math.inf}, d=2, lam=0.7, service=Deterministic()), levels=6,"
        " method='panels').tail".replace("inf", "math.inf"),
        "cavity(model=Supermarket(9, d=2, lam=0.7, service=Erlang(shape=2)), levels=6).tail",
        "cavity(model=Supermarket(9, d=2, lam=0.7, service=Gamma(shape=0.5)), levels=6).tail",
        "cavity(model=Supermarket(9, d=2, lam=0.7, service=Weibull(shape=0.8)), levels=6).tail",
        "cavity(model=Supermarket(9, d=2, lam=0.7, service=BoundedPareto(beta=1.5, ratio=99.0)), "
        "levels=6).tail",
        f"cavity_down_to(model={LAW}, tail=1e-3).tail",
        f"deepest(model={LAW}, levels=8).tail",
        f"{RUN}.profile",
    ],
    "law": [
        "max_queue_law_one_choice(model=Supermarket(n=20, d=1, lam=0.5))",
        "remembered_law(profile=[1.0, 0.8, 0.5, 0.1], d=1)",
        f"stationary_law(overflow={HARD}, spacing=0.3).mass",
        f"{CHAIN}.equilibrium",
        f"list({RUN}.max_queue.values())",
    ],
    "signed law": [f"stationary_law(overflow={SOFT}, spacing=0.3).mass"],
    "logs": [
        f"log_fixed_point(model={SMALL}, levels=3)",
        f"log_memory_fixed_point(model={MEMORY}, levels=3)",
        f"log_network_fixed_point(network={NET}, levels=3)",
        "deep_tail(model=Supermarket(9, 2, 0.7, service=Lomax(2.5)), depth=1e3, least=2).log_tail",
    ],
    # Laws and their functions: those of `supermarket.service`.
    "service": [
        "BoundedPareto(beta=1.5, ratio=1000.0)",
        "Deterministic().survival([0.5, 1.0])",
        "Empirical(samples=(1.0, 2.0, 4.0))",
        "Empirical(samples=(1.0, 2.0, 4.0)).laplace(theta=1.0)",
        "Erlang(shape=3)",
        "Exponential().survival(s=[0.0, 1.0])",
        "Gamma(shape=0.5).survival(s=[0.0, 1.0])",
        "GivenScipy(frozen=scipy.stats.expon())",
        "GivenSurvival(function=lambda s: np.exp(-s), breaks=(), end=math.inf, tail_index=None)",
        "Hyperexponential(probabilities=(0.5, 0.5), rates=(0.6, 3.0))",
        "Hyperexponential.from_scv(scv=3.0)",
        "Lognormal(sigma=1.0).integrated_tail(s=[0.0, 1.0])",
        "Lomax(beta=2.5).survival(s=[0.0, 1.0])",
        "Lomax(beta=2.5).scaled(mean=2.0)",
        "Lomax(beta=2.5).laplace(theta=1.0)",
        "Lomax(beta=2.5).moment(k=2)",
        "Lomax(beta=2.5).inverse_survival(p=[0.5, 0.1])",
        "Pareto(beta=2.5).survival(s=[0.0, 1.0])",
        "PhaseType(alpha=(0.5, 0.5), T=((-2.0, 1.0), (0.0, -1.0)))",
        "Uniform().survival(s=[0.0, 1.0])",
        "Weibull(shape=0.8).survival(s=[0.0, 1.0])",
        "hill_tail_index(samples=[1.0, 2.0, 4.0, 9.0], k=2)",
        "named_law(name='service', value='Lomax(1.5)')",
    ],
}
KINDS = {text: kind for kind, texts in CALLS.items() for text in texts}
UNFILLED = "read_sweep(out='none')"  # whose one valid example is a refusal
KINDS[UNFILLED] = ""

ODD = [
    "None", "True", "np.True_", "''", "'a'", "'0.5'", "b'a'", "'a\\nb'", "'x' * 10**5", "object()",
    "math.nan", "math.inf", "-math.inf", "-0.0", "0", "1", "2", "3", "-1", "0.5", "1.0", "1e-9",
    "5e-324", "1e-320", "1e-300", "1e-16", "1 - 1e-16", "1 - 1e-9", "1e9", "1e17", "1e300",
    "1e308", "-1e308", "10**400", "-10**400", "2**40", "2**53", "2**63", "2**64", "10**5", "10**6",
    "10**9", "10**18",
    "Fraction(1, 2)", "Fraction(1, 3)", "Fraction(10**400, 3)", "Fraction(3, 10**400)",
    "Decimal('0.5')", "Decimal('NaN')", "0.5j", "np.complex128(1)",
    "np.float16(0.5)", "np.float16(0.9)", "np.float32(0.9)", "np.longdouble('0.7')",
    "np.longdouble('1e4000')", "np.float64('nan')", "np.uint8(20)", "np.uint64(3)", "np.int8(5)",
    "np.timedelta64(3, 's')", "np.datetime64('2020-01-01')", "np.str_('a')", "np.bytes_(b'a')",
    "np.array(3)", "np.array(0.5)", "np.array([3])", "np.array([0.5])", "np.array('a')",
    "np.array(None)", "np.array([None, 1])", "np.array([1j, 0.5])", "np.zeros((2, 3))",
    "np.zeros((0, 3))", "np.zeros((2, 2, 2))", "np.ma.masked_array([1.0, 0.5], [False, True])",
    "np.array([1.0, math.nan])", "np.array([True, False])",
    "np.array([1, 2], np.uint8)", "np.array([1.0, 0.5], np.float16)",
    "np.array([3, 2, 1], np.timedelta64)", "np.array([(1, 2.0)], 'i4,f8')",
    "[]", "()", "[[]]", "[1.0]", "[1.0, 0.5]", "[0.5, 1.0]", "[0.0, 1.0]", "[1, 0]", "[0, 0]",
    "[1, 'a']", "[1, None]", "[[1, 2], [3]]", "[[1.0, 0.5], [0.5, 0.5]]", "[math.nan]",
    "[math.inf]", "[-math.inf]", "[-1]", "[1e308]", "[1e-320]", "[5e-324]", "[1e9]", "[10**9]",
    "[10**18, 1, 0]", "[10**400]", "[Fraction(1, 2)]", "[Decimal('0.5')]", "[0.5j]", "[True]",
    "[1.0] * 40000", "[0.5] * 40000", "[1] * 10**6", "[5, 2]", "[5, 5]", "[3.7, 1.2, 0]",
    "list(range(100))",
    "range(3)", "range(10**12)", "(x for x in [1.0, 0.5])", "iter([])", "{}", "{1: 2}", "{1, 2}",
    "lambda *given: 1.0", "len", "int", "float", "sum", "Exception()", "...", "print",
    "memoryview(b'abc')", "bytearray(b'abc')", "Supermarket", "Lomax",
    "Supermarket(5, 2, 0.5)", "Supermarket(math.inf, 2, 0.5)", "Supermarket(20, 2, 1.5)",
    "Supermarket(20, 2**40, 0.7)", "Supermarket(20, 1, 0.7)", "Supermarket(10**18, 2, 0.7)",
    "Supermarket(1, 1, 0.5)", "Supermarket(20, 2, 1e-300)", "Supermarket(20, 2, 1 - 1e-16)",
    "Supermarket(20, 2, 0.7, replacement=False)", "Supermarket(20, 2, 0.7, policy='memory')",
    "Supermarket(20, 2, 0.7, discipline='lifo')", "Supermarket(20, 2, 0.7, service=Lomax(1.2))",
    "Supermarket(20, 2, 0.7, service=Deterministic())", "Schedule(1)", "Schedule(8, batches=2)",
    "Lomax(2.5)", "Deterministic()", "Weibull(1000.0)", "Lognormal(1e-6)", "Gamma(1e4)",
    "Exponential().scaled(1e-300)", "BoundedPareto(1000.0, 1e100)", "Empirical((1.0, 2.0))",
    "server_pools([1.0], [[2.0, 1.0]], levels=2)", "ReflectedOverflow(1.0)", "LinearOverflow(1.0)",
    "ReflectedOverflow(math.nan)", "ReflectedOverflow('a')", "LinearOverflow(1e308)",
    "ExponentialOverflow(1e10, 1.0)", "ExponentialOverflow(None, 0.0)",
    "jackson_network([0.5], [[0.0]], 1)", "mean_interval([1.0, 2.0])", "Computed(1.0)",
    "small_chain(Supermarket(2, 1, 0.5), 2)", "cavity(Supermarket(9, 2, 0.7), 4)",
    "simulate(Supermarket(9, 2, 0.7), 2, seed=1)", "np.random.default_rng(1)",
    "np.random.SeedSequence(1)", "np.random.RandomState(1)", "modes(Supermarket(9, 2, 0.7), 1)",
    "simulate", "import_module('math')",
]  # fmt: skip
FOREIGN = ("np.", "list", "scipy.")  # not ours to check
TYPES = (
    "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float16", "float32",
    "float64", "longdouble",
)  # fmt: skip


@cache
def names():
    """Return what the texts may name."""
    from decimal import Decimal
    from fractions import Fraction
    from importlib import import_module

    import scipy.stats

    import supermarket
    from supermarket.limits.growing.diffusions import ExponentialOverflow, LinearOverflow

    public = {name: getattr(supermarket, name) for name in supermarket.homes()}
    more = (LinearOverflow, ExponentialOverflow, Fraction, Decimal, import_module)
    wave = np.sin(np.arange(64.0))
    given = {"WAVE": wave, "SQUARE": wave**2, "EVEN": np.full(35, 1 / 35)}
    given |= {"RNG": lambda: np.random.default_rng(1), "np": np, "math": math, "scipy": scipy}
    # A run may take a thousandth of the time that it usually may: what is longer is refused.
    public["Schedule"].__init__.__defaults__ = (None, 64, (), "service", 1e-3)
    return public | {one.__name__: one for one in more} | given


@cache
def places(text):
    """Return the arguments in a call, at any depth: numbers that `replaced` knows them by."""
    return range(len(list(_arguments(ast.parse(text, mode="eval")))))


def _arguments(tree):
    """Yield each argument, and where it stands: (parent's list or keyword, place in it)."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and ast.unparse(node.func).startswith(FOREIGN):
            continue
        if isinstance(node, ast.Call):
            for keyword in node.keywords:
                yield keyword.value, (keyword, None)
            for k, argument in enumerate(node.args):
                yield argument, (node.args, k)
        elif isinstance(node, ast.List | ast.Tuple):
            for k, argument in enumerate(node.elts):
                yield argument, (node.elts, k)
        elif isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
            yield node.slice, (node, "slice")


def replaced(text, changes):
    """Return a call with other arguments, {place: text}, and the names of those."""
    tree = ast.parse(text, mode="eval")
    arguments, called = list(_arguments(tree)), []
    for place, odd in changes.items():
        _, (parent, k) = arguments[place]
        new = ast.parse(f"({odd})", mode="eval").body
        if isinstance(parent, ast.keyword):
            called.append(parent.arg)
            parent.value = new
        elif isinstance(parent, list):
            parent[k] = new
        else:
            parent.slice = new
    return ast.unparse(tree), called


def number_at(text, place):
    """Return the number that stands at a place, None if there is another thing."""
    node = list(_arguments(ast.parse(text, mode="eval")))[place][0]
    try:
        value = ast.literal_eval(node)
    except ValueError:
        return None
    return value if type(value) in (int, float) else None


def typed(value, kind):
    """Return a number as one of a NumPy type, and as what Python has for that: texts.

    Whole numbers that the type does not hold are left as they are.
    """
    if type(value) is int and kind not in ("int64", "uint64") and value > 127:
        kind = "int64"
    if type(value) is float and abs(value) > 127:
        kind = "float64"
    plain = "int" if type(value) is int else "float"
    return f"np.{kind}({value!r})", f"{plain}(np.{kind}({value!r}))"


def told(value):
    """Return a result as text that is the same for equal results."""
    if is_dataclass(value) and not isinstance(value, type):
        each = {one.name: getattr(value, one.name) for one in fields(value)}
        return f"{type(value).__name__}({ {name: told(one) for name, one in each.items()} })"
    if isinstance(value, np.ndarray):
        return f"{value.dtype}{value.shape}{value.tolist()}"
    if isinstance(value, Mapping):
        return str({key: told(one) for key, one in value.items()})
    if isinstance(value, list | tuple):
        return f"{type(value).__name__}{[told(one) for one in value]}"
    return "callable" if callable(value) else repr(value)


def fault(value, kind):
    """Return what is wrong with a result; nothing if it is sane."""
    from supermarket import CavityEquilibrium, Computed, Coupling, Interval, Run, ServiceLaw

    if isinstance(value, Run):
        return _fault_of_run(value)
    if isinstance(value, Interval):
        if not np.all(~np.isnan(value.estimate) | (value.refused != "")):
            return f"estimate {value.estimate} without a reason"
        ends = np.array([value.low, value.high])
        if np.any(ends[0] > ends[1]):
            return f"ends {value.low}, {value.high}"
        if kind in ("shares", "positive") and np.any(np.nan_to_num(ends) < 0):
            return f"ends {value.low}, {value.high}"
        return ""
    if isinstance(value, Computed):
        return "" if not math.isnan(value.estimate) else "NaN"
    if isinstance(value, Coupling):
        return _fault_of_numbers(np.concatenate([value.l1, value.linf]), "positive")
    if isinstance(value, CavityEquilibrium):
        return _fault_of_numbers(value.tail, "tail")
    if isinstance(value, ServiceLaw):
        seen = value.survival([0.0, 0.1, 1.0, 10.0])
        return _fault_of_numbers(seen, "tail") if value.mean > 0 else f"mean {value.mean}"
    if is_dataclass(value) and not isinstance(value, type):
        parts = [getattr(value, one.name) for one in fields(value)]
        return next(filter(None, (fault(part, "") for part in parts if _numeric(part))), "")
    if isinstance(value, Mapping):
        return next((wrong for one in value.values() if (wrong := fault(one, kind))), "")
    if "law" not in kind and isinstance(value, list | tuple):
        return next((wrong for one in value if (wrong := fault(one, kind))), "")
    return _fault_of_numbers(value, kind) if _numeric(value) else ""


def _numeric(value):
    try:
        return np.asarray(value).dtype.kind in "biufc"
    except ValueError:
        return False


def _fault_of_numbers(value, kind):
    x = np.asarray(value)
    if x.dtype.kind == "c":
        x = np.abs(x)
    x = x.astype(np.float64)
    if kind != "nan" and np.any(np.isnan(x)):
        return "NaN"
    slack = 1e-8  # of the solvers
    if kind in ("positive", "shares", "tail", "law", "rising") and np.any(x < -slack):
        return f"negative: {np.min(x)}"
    if kind in ("shares", "tail", "law") and np.any(x > 1 + slack):
        return f"above 1: {np.max(x)}"
    if "law" in kind and x.size and abs(x.sum() - 1) > 1e-6:
        return f"sum {x.sum()}"
    if kind == "tail" and x.ndim and np.any(np.diff(x, axis=-1) > slack):
        return "a tail that increases"
    if kind == "logs" and (np.any(x > 0) or np.any(np.diff(x, axis=-1) > 0)):
        return "logarithms of no tail"
    return ""


def _fault_of_run(run):
    wrong = [_fault_of_run(one) for one in run.stations.values()]
    if run.batches:
        profiles = run.batches["profile"]
        wrong.append(_fault_of_numbers(profiles, "tail"))
        if "maximum" in run.batches:
            sums = run.batches["maximum"].sum(axis=1)
            wrong.append("" if np.allclose(sums, 1) else f"a law with sum {sums}")
            wrong.append(_fault_of_numbers(run.mean_queue, "positive"))
        wrong.append(fault(run.extra.get("bias", 0.0), ""))
    return next(filter(None, wrong), "")


def outcome(text, plain, kind, called):
    """Make a call here and now; return ("pass" or a kind of failure, what was seen)."""
    from supermarket import ParameterError

    warnings.simplefilter("error")
    try:
        code = compile(text, "call", "eval")
        value = eval(code, dict(names()))
        wrong = fault(value, kind)
        if wrong:
            return "nonsense", wrong
        if plain and told(value) != (other := told(eval(plain, dict(names())))):
            return "differs", f"{told(value)[:200]} is not {other[:200]}"
        return "pass", "result"
    except ParameterError as error:
        sentence = str(error)
        if len(sentence) > LONGEST or "\n" in sentence or not sentence.endswith("."):
            return "sentence", sentence[:700]
        if plain:
            with contextlib.suppress(ParameterError):
                return "differs", f"{sentence}, but {eval(plain, dict(names()))!r:.200}"
        return "pass", f"sentence: {sentence}"
    except MemoryError:
        return "memory", ""
    except Warning as warning:
        return "warning", f"{type(warning).__name__}: {warning}"
    except Exception as error:
        import traceback

        where = traceback.extract_tb(error.__traceback__)[-1]
        at = f" ({os.path.basename(where.filename)}:{where.lineno})"
        return "exception", f"{type(error).__name__}: {str(error)[:200]}{at}"


class Server:
    """The process that forks, as a test sees it."""

    def __init__(self):
        self._process = subprocess.Popen(
            [sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def outcome(self, base, text, plain="", called=()):
        """Return (kind of outcome, what was seen) of a call that was made from a valid one."""
        order = json.dumps([base, text, plain, KINDS.get(base, ""), list(called)])
        self._process.stdin.write(order + "\n")
        self._process.stdin.flush()
        return tuple(json.loads(self._process.stdout.readline()))

    def close(self):
        """End the process."""
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()


def serve():
    """Make the calls that come in as lines of JSON, each in a fork, and answer each with a line."""
    answers = os.fdopen(os.dup(1), "w")
    silent = os.open(os.devnull, os.O_RDWR)
    os.dup2(silent, 1)
    os.dup2(silent, 2)
    seen = set()
    for line in sys.stdin:
        base, text, plain, kind, called = json.loads(line)
        if base not in seen:  # loads modules and kernels once for all forks
            seen.add(base)
            with contextlib.suppress(Exception):
                eval(base, dict(names()))
        print(json.dumps(forked(text, plain, kind, called)), file=answers, flush=True)


def forked(text, plain, kind, called):
    """Return the outcome of a call in a fork."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS + 1))
        pages = int(Path("/proc/self/statm").read_text().split()[5])
        most = pages * resource.getpagesize() + BYTES
        resource.setrlimit(resource.RLIMIT_DATA, (most, most))
        try:
            found = outcome(text, plain, kind, called)
        except BaseException as error:
            found = "exception", type(error).__name__
        os.write(writing, json.dumps(found).encode())
        os._exit(0)
    os.close(writing)
    answer = b""
    with os.fdopen(reading, "rb") as pipe:
        if select.select([pipe], [], [], WALL_SECONDS)[0]:
            answer = pipe.read()
        else:
            os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    if answer:
        return json.loads(answer)
    ended = os.waitstatus_to_exitcode(status)
    return ("hang", "") if ended in (-signal.SIGXCPU, -signal.SIGKILL) else ("crash", str(ended))


if __name__ == "__main__":
    serve()
