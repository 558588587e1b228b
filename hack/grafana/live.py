"""The dashboard of a run while it goes on."""

from grafana_foundation_sdk.builders import statetimeline, table
from grafana_foundation_sdk.models import common as shapes

from grafana.common import (
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    VERDICTS,
    VERMILION,
    Page,
    by_threshold,
    coloured_by_name,
    column,
    dressed,
    fixed,
    instant_query,
    levels,
    lines,
    merged,
    number,
    range_query,
    share,
    steps,
    table_query,
    with_queries,
    words,
)

_DESCRIPTION = (
    "One BenchmarkRun in progress: its state, the current trial, and its rates. Rates are what the tools say "
    "meanwhile, to watch and not to quote; the numbers to quote are in Plimsoll / Results."
)


def _of(metric: str, **labels: str) -> str:
    """Return the selector of a metric of the run."""
    chosen = {"namespace": "$namespace", "run": "$run", **labels}
    matchers = ",".join(f'{name}="{value}"' for name, value in chosen.items())
    return f"{metric}{{{matchers}}}"


def page() -> Page:
    """Return the dashboard."""
    live = Page("plimsoll-live", "Live run", _DESCRIPTION, since="now-30m", refresh="10s")
    live.variable("namespace", "Namespace", "label_values(plimsoll_run_info, namespace)")
    live.variable("run", "Run", 'label_values(plimsoll_run_info{namespace="$namespace"}, run)')
    live.row("Where it is")
    _progress(live)
    _waiting(live)
    live.row("The trial under way")
    _trial(live)
    live.row("Load")
    _load(live)
    return live


def _progress(live: Page) -> None:
    status = dressed(number(names=True), "Status", "What `kubectl get brun` shows.", "none", nothing="no such run")
    live.add(status.with_target(instant_query(f"max by (status) ({_of('plimsoll_run_info')})", "{{status}}")), 4, 4)

    about = "The phase that the conductor is in; Gathering is waiting for clients and for the cluster."
    phase = dressed(number(names=True), "Conductor", about, "none", nothing="no conductor")
    live.add(phase.with_target(instant_query(f"max by (phase) ({_of('plimsoll_live_phase')}) == 1", "{{phase}}")), 4, 4)

    trials = dressed(number(), "Trials", "Done: trials that need no further attempt.", "none", nothing="no conductor")
    each = instant_query(f"max by (state) ({_of('plimsoll_live_trials')})", "{{state}}")
    live.add(trials.decimals(0).with_target(each), 5, 4)

    about = "Trials that are done, of all trials. Repeated attempts do not count."
    done = f"max({_of('plimsoll_live_trials', state='done')}) / max({_of('plimsoll_live_trials', state='planned')})"
    ratio = dressed(share(), "Progress", about, "percentunit", nothing="no conductor")
    live.add(ratio.with_target(instant_query(done, "done")), 3, 4)

    about = "Estimated end of the last trial if no attempt has to be repeated; updated with every attempt."
    end = dressed(number(), "Measured", about, "dateTimeFromNow", nothing="not measuring")
    estimate = f"max({_of('plimsoll_run_estimated_completion_timestamp_seconds')}) * 1000"
    live.add(end.with_target(instant_query(estimate, "estimate")), 4, 4)

    about = "Whether the Ceph cluster is fit for a trial; while it is not, trials wait until timeouts.readySeconds."
    gate = dressed(number(), "Gate", about, "none", nothing="nothing is watched")
    gate = gate.mappings([words({"1": ("open", GREEN), "0": ("closed", VERMILION)})])
    gate = gate.color_scheme(by_threshold()).thresholds(steps(VERMILION, (1, GREEN)))
    live.add(gate.with_target(instant_query(f"min({_of('plimsoll_live_gate_open')})", "gate")), 4, 4)


def _waiting(live: Page) -> None:
    about = "All conditions of the run. `kubectl get brun -o yaml` has their messages, with the next step."
    conditions = dressed(table.Panel(), "Conditions", about, "none", nothing="no such run")
    conditions = conditions.with_target(
        table_query(f"max by (condition, reason) ({_of('plimsoll_run_condition')})")
    ).transformations(merged({"condition": "Condition", "Value": "Status", "reason": "Reason"}))
    meanings = {"1": ("True", BLUE), "0": ("False", ORANGE), "-1": ("Unknown", GREY)}
    live.add(column(conditions.mappings([words(meanings)]), "Status", "none"), 10, 8)

    about = "Planned: clients of the run. Armed and measuring: clients of the current trial, which may use fewer."
    clients = dressed(levels(), "Clients", about, "none", nothing="no conductor")
    each = instant_query(f"max by (state) ({_of('plimsoll_live_clients')})", "{{state}}")
    live.add(clients.with_target(each), 6, 8)

    about = "Bytes that clients have written before anything is measured, of the whole data set."
    total = f"(max({_of('plimsoll_live_prefill_bytes', state='total')}) > 0)"
    done = f"max({_of('plimsoll_live_prefill_bytes', state='done')})"
    prefill = dressed(share(), "Prefill", about, "percentunit", nothing="nothing to fill")
    live.add(prefill.with_target(instant_query(f"{done} / {total}", "filled")), 4, 8)

    about = "Attempts that this conductor has recorded; one that was started again counts from then on."
    attempts = dressed(number(), "Attempts", about, "none", nothing="none yet").decimals(0)
    colours = {f"Measured {verdict}": colour for verdict, colour in VERDICTS.items()}
    attempts = coloured_by_name(attempts, {**colours, "Aborted Invalid": GREY})
    counted = f"sum by (outcome, verdict) ({_of('plimsoll_live_attempts_total')})"
    live.add(attempts.with_target(instant_query(counted, "{{outcome}} {{verdict}}")), 4, 8)


def _trial(live: Page) -> None:
    info = _of("plimsoll_live_trial_info")
    about = "The point, with its parameters, and which attempt at which pass over all points."
    now = dressed(table.Panel(), "Now", about, "none", nothing="no trial is under way")
    now = now.with_target(table_query(f"max by (workload, point, parameters, pass, attempt) ({info})"))
    names = ("workload", "point", "parameters", "pass", "attempt")
    live.add(now.transformations(merged({name: name.capitalize() for name in names})), 10, 5)

    about = "Elapsed part of the trial, ramp included; 0 while the clients are being armed."
    elapsed = dressed(share(), "Elapsed", about, "percentunit", nothing="no trial")
    ratio = instant_query(f"max({_of('plimsoll_live_trial_elapsed_ratio')})", "elapsed")
    live.add(elapsed.with_target(ratio), 4, 5)

    about = "The point that was measured at each time; every pass has a newly shuffled order."
    when = statetimeline.Panel().show_value(shapes.VisibilityMode.NEVER).merge_values(merge_values=True)
    when = dressed(when, "Trials over time", about, "none", nothing="no trial").color_scheme(fixed(BLUE))
    live.add(when.with_target(range_query(f"max by (point, parameters) ({info})", "{{point}} {{parameters}}")), 10, 5)


def _load(live: Page) -> None:
    said = "What fio or rados bench of all clients prints while it runs, added up; not between trials. Do not quote it."
    iops = dressed(lines(), "Operations", said, "iops", nothing="no rates")
    rate = range_query(f"sum by (operation) ({_of('plimsoll_live_operations_per_second')})", "{{operation}}")
    live.add(iops.with_target(rate), 12, 9)

    rate = range_query(f"sum by (operation) ({_of('plimsoll_live_bytes_per_second')})", "{{operation}}")
    live.add(dressed(lines(), "Throughput", said, "binBps", nothing="no rates").with_target(rate), 12, 9)

    about = (
        "Of the last trial that was measured, clients merged: tools report latencies only when they end. Logarithmic."
    )
    latency = dressed(lines(log=True), "Latency of the last trial", about, "s", nothing="no trial was measured yet")
    quantiles = f"max by (operation, quantile) ({_of('plimsoll_live_latency_seconds')})"
    live.add(latency.with_target(range_query(quantiles, "{{operation}}, quantile {{quantile}}")), 12, 9)

    about = "Clients whose tool is running, and clients whose rates are in the sums above. With fio, the two are equal."
    clients = dressed(lines(), "Clients that measure and report", about, "none", nothing="no trial").decimals(0)
    queries = [
        range_query(f"max({_of('plimsoll_live_clients', state='measuring')})", "measuring", "A"),
        range_query(f"max({_of('plimsoll_live_clients_reporting')})", "reporting", "B"),
    ]
    live.add(with_queries(clients, queries), 12, 9)
