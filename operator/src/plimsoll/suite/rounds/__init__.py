"""The next step for a suite: when a round starts, which run comes next, and how a round ends.

`step` decides, and a shell performs its decision and keeps these rules:

1. **It reads the suite from the API server for every look**, never from a watch's copy, and lists the runs that the
   suite owns by UID and whose names contain their turn (`suite.children.turn_in_name`). The list may be old.
2. **It performs the actions in their order and stops at the first that fails.** The status is written with the
   `resource_version` that was read. After a conflict it looks again.
3. **It looks again after every request, at once, with its outcome**: `memory.after(outcome)`. Only when there is no
   request does it wait, for an event about the suite or one of its runs, at most for `again_after` seconds
   (`LONGEST_WAIT_SECONDS`); then it continues with `memory.woken(listed)`.
4. **It reports only definite refusals**, with the time of the request. After everything else, which leaves the memory
   as it is, it looks again after a growing pause. If the name is taken, it reads the existing run: one that the
   suite owns and that measures the same is the outcome, any other is a `RunRefusal` with `is_taken`.
5. **A run counts as gone only after `Absent`**, the API server's NotFound to a request by name.
6. **It judges exactly what `Judge` names**, and answers with that request in the `RecordedEvaluation`.
7. **It performs nothing for a suite that is being deleted**: runs are garbage-collected.
8. **A status that cannot be read is left alone**: another version wrote it. The shell reports it and waits.
"""
