"""Runs a case's session: the real conductor with simulated agents and the case's events."""

from corpus.case import Event, Session
from plimsoll.api.result import ResultStatus, Trial
from plimsoll.conductor.phases import ClusterView, Ended, Running
from plimsoll.protocol.messages import AgentState
from support.client_documents import make_plan
from support.simulation import SimulatedAgent, Simulation

STEP = 0.1
WELL = ClusterView(prepared=True)
ILL = ClusterView(prepared=True, problems=("1 of 3 OSDs are down",))
_CLUSTERS = {"none": None, "well": WELL, "ill": ILL}
MAX_STEPS = 50_000


def conduct(session: Session) -> "Course":
    """Let a session take its course, with all events, until it has ended.

    Raises:
        AssertionError: it does not end, or an event never comes due.

    """
    course = Course(session)
    for _ in range(MAX_STEPS):
        if course.has_ended:
            assert not course.coming, f"never happened: {course.coming[0]}"
            return course
        course.step()
    message = f"stuck in {course.simulation.session.phase}"
    raise AssertionError(message)


class Course:
    """The course of a session."""

    def __init__(self, session: Session) -> None:
        plan = make_plan(points=1, clients=session.clients, repetitions=session.repetitions, reads=session.reads)
        self.simulation = Simulation(plan, cluster=_CLUSTERS[session.cluster])
        self.coming = list(session.events)
        self._silent = dict.fromkeys(session.absent, float("inf"))
        self._endless: set[int] = set()

    @property
    def trials(self) -> tuple[Trial, ...]:
        """Every attempt, in the order of recording."""
        return self.simulation.stored.get("w-000", ())

    @property
    def status(self) -> ResultStatus:
        """The status of the result object."""
        return self.simulation.session.ledger.status("w-000", None)

    @property
    def has_ended(self) -> bool:
        return isinstance(self.simulation.session.phase, Ended)

    def step(self) -> None:
        while self.simulation.work():
            self._happen()
        for agent in list(self.simulation.agents):
            self._happen()
            if self._silent.get(agent.client, 0.0) <= self.simulation.seconds:
                self._poll(agent)
        self._happen()
        self.simulation.pass_time(STEP)

    def _poll(self, agent: SimulatedAgent) -> None:
        self.simulation.poll(agent)
        if agent.client in self._endless:
            # It keeps answering while its tool does not end.
            agent.started = False

    def _happen(self) -> None:
        """Trigger the next event if it is due."""
        if self.coming and len(self.trials) >= self.coming[0].after and self.coming[0].at == self._place():
            self._do(self.coming.pop(0))

    def _place(self) -> str:
        """Return the conductor's phase, by the names of `Event`."""
        phase, agents = self.simulation.session.phase, self.simulation.agents
        if isinstance(phase, Running):
            return "Running" if all(map(self._has_begun, agents)) else "Released"
        return type(phase).__name__

    def _has_begun(self, agent: SimulatedAgent) -> bool:
        return agent.started or agent.client in self._silent or agent.client in self._endless

    def _do(self, event: Event) -> None:
        if event.client is None:
            self._befall(event)
        else:
            self._misbehave(event, event.client)

    def _befall(self, event: Event) -> None:
        """Trigger an event of the conductor or the cluster."""
        match event.does:
            case "restarts":
                self.simulation.crash()
            case "interrupted":
                self.simulation.session.stop()
            case "fallsIll":
                self.simulation.cluster = ILL
            case "recovers":
                self.simulation.cluster = WELL
            case _:
                raise AssertionError(event)

    def _misbehave(self, event: Event, client: int) -> None:
        """Trigger a client's misbehaviour."""
        simulation = self.simulation
        match event.does:
            case "restarts":
                simulation.kill(simulation.agents[client])
            case "hangs":
                self._silent[client] = simulation.seconds + event.seconds
            case "armsLate":
                simulation.arms_at[client] = simulation.seconds + event.seconds
            case "fails":
                simulation.failing.add(client)
            case "neverEnds":
                simulation.agents[client].started = False
                self._endless.add(client)
            case "failsToStage":
                simulation.staging[client] = AgentState.FAILED
            case "neverStaged":
                simulation.staging[client] = AgentState.STAGING
            case "repeats":
                posts = [post for post in simulation.posts if post.client == client]
                assert simulation.post(posts[-1]) is not True, "a document that was of use before must not be again"
            case _:
                raise AssertionError(event)
