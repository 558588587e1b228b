"""The live rates of a trial, and the metrics of a run."""

import asyncio
import logging
import socket

import aiohttp
import pytest

from plimsoll.agent.agent import EXIT_DISMISSED
from plimsoll.api.names import Operation, Outcome, RunPhase, Verdict
from plimsoll.api.status import Live, LiveRate
from plimsoll.cli.launch import free_port
from plimsoll.conductor.attempt import Timings
from plimsoll.conductor.main import EXIT_COMPLETE
from plimsoll.conductor.phases import Arming, ClusterView, Ended, Judging, Running, Staging
from plimsoll.conductor.server import view_of
from plimsoll.metrics import catalogue
from plimsoll.metrics.catalogue import MetricFamily
from plimsoll.metrics.live import live_snapshot, samples_of
from plimsoll.protocol.messages import AgentState, Report
from support.client_documents import make_plan
from support.goldens import check_against_catalogue, scraped, values
from support.rendezvous import PretendedWork, Setting
from support.simulation import Simulation

RUN = ("default", "simulated")


def running(simulation: Simulation) -> None:
    simulation.until(Running)
    for agent in simulation.agents:
        simulation.poll(agent)


def report_rates(simulation: Simulation, client: int, *rates: LiveRate, behind: int = 0) -> None:
    """Report a client's rates, under the order that is `behind` orders old."""
    known = simulation.session.roster.get([client])[0]
    report = Report(
        epoch=simulation.session.epoch,
        client=client,
        instance=known.instance,
        sequence=known.sequence - behind,
        state=AgentState.RUNNING,
        rates=rates,
    )
    simulation.session.report(report, simulation.moment)


def rate(iops: float, operation: Operation = Operation.READ) -> LiveRate:
    return LiveRate(operation=operation, iops=iops, bytes_per_second=round(iops * 4096))


def live(simulation: Simulation) -> Live | None:
    return simulation.state.live


def metric_of(simulation: Simulation, metric: MetricFamily) -> dict[tuple[str, ...], float]:
    return values(samples_of(view_of(simulation.session, simulation.moment)), metric)


# -- the sum over the clients


def test_the_newest_rates_of_all_clients_are_added_up() -> None:
    simulation = Simulation(make_plan(points=1, clients=2, repetitions=1))
    running(simulation)
    assert live(simulation) is None
    report_rates(simulation, 0, rate(100.0))
    assert live(simulation) == Live(clients=1, rates=(rate(100.0),))
    report_rates(simulation, 1, rate(40.0), rate(7.0, Operation.WRITE))
    report_rates(simulation, 0, rate(110.0), rate(5.0, Operation.WRITE))
    assert live(simulation) == Live(clients=2, rates=(rate(150.0), rate(12.0, Operation.WRITE)))


def test_a_silent_client_is_not_in_the_sum() -> None:
    simulation = Simulation(make_plan(points=1, clients=2, repetitions=1))
    running(simulation)
    report_rates(simulation, 0, rate(100.0))
    simulation.pass_time(5.0)
    report_rates(simulation, 1, rate(40.0))
    assert live(simulation) == Live(clients=2, rates=(rate(140.0),))
    simulation.pass_time(1.5)
    assert live(simulation) == Live(clients=1, rates=(rate(40.0),))
    report_rates(simulation, 1)
    assert live(simulation) is None


def test_rates_under_an_earlier_order_are_ignored() -> None:
    simulation = Simulation(make_plan(points=1, clients=1, repetitions=2))
    running(simulation)
    report_rates(simulation, 0, rate(100.0), behind=1)
    assert live(simulation) is None


def test_rates_end_with_their_trial() -> None:
    simulation = Simulation(make_plan(points=1, clients=2, repetitions=2))
    running(simulation)
    report_rates(simulation, 0, rate(100.0))
    report_rates(simulation, 1, rate(100.0))
    simulation.pass_time(4.0)
    report_rates(simulation, 1, rate(100.0))
    simulation.pass_time(2.5)
    simulation.poll(simulation.agents[0])
    assert live(simulation) == Live(clients=1, rates=(rate(100.0),)), "client 0 has sent its document"
    simulation.poll(simulation.agents[1])
    assert isinstance(simulation.session.phase, Judging)
    assert live(simulation) is None
    running(simulation)
    assert live(simulation) is None


def test_neither_a_new_process_nor_a_new_conductor_knows_rates() -> None:
    simulation = Simulation(make_plan(points=1, clients=1, repetitions=1))
    running(simulation)
    report_rates(simulation, 0, rate(100.0))
    simulation.crash()
    assert live(simulation) is None
    running(simulation)
    report_rates(simulation, 0, rate(100.0))
    simulation.kill(simulation.agents[0])
    simulation.poll(simulation.agents[0])
    assert live(simulation) is None


def test_many_clients_report_less_often() -> None:
    assert Timings().live_seconds(1) == 2.0
    assert Timings().live_seconds(500) == 10.0


# -- metrics


def test_all_metrics_are_in_the_catalogue_and_those_of_a_trial_end_with_it() -> None:
    simulation = Simulation(
        make_plan(points=1, clients=2, repetitions=1, reads=True), cluster=ClusterView(prepared=True)
    )
    seen: set[str] = set()
    while not isinstance(simulation.session.phase, Ended):
        simulation.work()
        for agent in simulation.agents:
            simulation.poll(agent)
        if isinstance(simulation.session.phase, Running):
            report_rates(simulation, 0, rate(100.0))
        families = scraped(live_snapshot(view_of(simulation.session, simulation.moment)))
        check_against_catalogue(families)
        names = {family.name for family in families}
        under_way = isinstance(simulation.session.phase, Staging | Arming | Running)
        assert (catalogue.LIVE_TRIAL_INFO.name in names) == under_way
        assert (catalogue.LIVE_TRIAL_ELAPSED.name in names) == under_way
        assert (catalogue.LIVE_IOPS.name in names) == isinstance(simulation.session.phase, Running)
        seen |= names
        simulation.pass_time(0.2)
    everything = {metric.name.removesuffix("_total") for metric in catalogue.METRICS if "_live_" in metric.name}
    # The simulated clients prepare in no time, and know mean latencies only.
    assert seen == everything - {catalogue.LIVE_PREFILL.name, catalogue.LIVE_LATENCY.name} | (
        seen & {catalogue.LIVE_PREFILL.name}
    )


def test_the_metrics_of_a_trial_show_its_clients_and_rates() -> None:
    simulation = Simulation(make_plan(points=1, clients=3, taking_part=2, repetitions=1))
    running(simulation)
    report_rates(simulation, 0, rate(100.0), rate(50.0, Operation.WRITE))
    report_rates(simulation, 1, rate(100.0))
    point = (*RUN, "w", "w-000")
    assert metric_of(simulation, catalogue.LIVE_TRIAL_INFO) == {(*point, "point 0", "0", "0"): 1}
    assert metric_of(simulation, catalogue.LIVE_IOPS) == {(*point, "read"): 200.0, (*point, "write"): 50.0}
    assert metric_of(simulation, catalogue.LIVE_BYTES) == {(*point, "read"): 819_200, (*point, "write"): 204_800}
    assert metric_of(simulation, catalogue.LIVE_REPORTING) == {RUN: 2}
    clients = {labels[-1]: value for labels, value in metric_of(simulation, catalogue.LIVE_CLIENTS).items()}
    assert clients == {"planned": 3, "registered": 3, "missing": 0, "armed": 0, "measuring": 2}
    phases = metric_of(simulation, catalogue.LIVE_PHASE)
    assert {labels[-1] for labels, value in phases.items() if value} == {RunPhase.MEASURING}
    assert len(phases) == len(RunPhase)


def test_a_trial_has_elapsed_from_its_t0_to_its_end() -> None:
    simulation = Simulation(make_plan(points=1, clients=1, repetitions=1))
    simulation.until(Arming)
    assert metric_of(simulation, catalogue.LIVE_TRIAL_ELAPSED) == {RUN: 0.0}
    running(simulation)
    current = simulation.state.current
    assert current is not None
    simulation.pass_time(current.starts_at - simulation.moment.wall / 1e9 + 1.25)
    assert metric_of(simulation, catalogue.LIVE_TRIAL_ELAPSED)[RUN] == pytest.approx(0.25)
    simulation.pass_time(60)
    assert metric_of(simulation, catalogue.LIVE_TRIAL_ELAPSED) == {RUN: 1.0}


def test_attempts_are_counted_from_zero_by_how_they_ended() -> None:
    simulation = Simulation(make_plan(points=1, clients=1, repetitions=1))
    attempts = metric_of(simulation, catalogue.LIVE_ATTEMPTS)
    assert attempts == dict.fromkeys(attempts, 0)
    assert (*RUN, Outcome.MEASURED, Verdict.VALID) in attempts
    running(simulation)
    simulation.kill(simulation.agents[0])
    simulation.settle()
    attempts = metric_of(simulation, catalogue.LIVE_ATTEMPTS)
    assert attempts[*RUN, Outcome.ABORTED, Verdict.INVALID] == 1
    measured = sum(count for labels, count in attempts.items() if labels[2] == Outcome.MEASURED)
    assert measured == sum(trial.outcome is Outcome.MEASURED for trial in simulation.stored["w-000"]) >= 1
    assert metric_of(simulation, catalogue.LIVE_TRIALS) == {(*RUN, "planned"): 1, (*RUN, "done"): 1}


def test_the_gate_has_a_metric_only_with_a_cluster() -> None:
    simulation = Simulation(make_plan(), cluster=ClusterView(prepared=True, problems=("1 of 3 OSDs are down",)))
    simulation.look()
    assert metric_of(simulation, catalogue.LIVE_GATE) == {RUN: 0.0}
    simulation.cluster = ClusterView(prepared=True)
    simulation.look()
    assert metric_of(simulation, catalogue.LIVE_GATE) == {RUN: 1.0}
    assert metric_of(Simulation(make_plan()), catalogue.LIVE_GATE) == {}


# -- the port


def families_of(text: str) -> set[str]:
    return {line.split()[2] for line in text.splitlines() if line.startswith("# TYPE")}


async def test_metrics_need_no_token_and_end_with_the_run(setting: Setting) -> None:
    port = free_port()
    run = asyncio.create_task(setting.conduct(metrics_port=port))
    async with asyncio.timeout(60), aiohttp.ClientSession() as session:
        while True:
            try:
                async with session.get(f"http://127.0.0.1:{port}/metrics") as response:
                    text = await response.text()
            except aiohttp.ClientConnectionError:
                await asyncio.sleep(0.05)
                continue
            break
    assert response.status == 200
    assert {catalogue.LIVE_PHASE.name, catalogue.LIVE_CLIENTS.name} <= families_of(text)
    assert await asyncio.gather(run, *(setting.agent(client) for client in range(3))) == [EXIT_COMPLETE, 0, 0, 0]
    with pytest.raises(ConnectionRefusedError):
        await asyncio.open_connection("127.0.0.1", port)


async def test_a_run_without_its_metrics_port_continues_and_logs_it(
    setting: Setting, caplog: pytest.LogCaptureFixture
) -> None:
    with socket.socket() as taken:
        taken.bind(("0.0.0.0", 0))  # noqa: S104 - what the conductor wants
        taken.listen()
        port = taken.getsockname()[1]
        with caplog.at_level(logging.ERROR):
            codes = await asyncio.gather(
                setting.conduct(metrics_port=port), *(setting.agent(n, work=PretendedWork(n)) for n in range(3))
            )
    assert codes == [EXIT_COMPLETE, *[EXIT_DISMISSED] * 3]
    assert f":{port}/metrics: cannot listen" in caplog.text


@pytest.fixture
def setting(tmp_path_factory: pytest.TempPathFactory) -> Setting:
    return Setting(tmp_path_factory.mktemp("run"), make_plan(points=1, clients=3, repetitions=1))
