"""fio on a volume or an image.

`parameters` defines a point, with the CEL `rules` for it. `command` turns it into arguments. `document` reads fio's
JSON, `logs` its logs of rates and of latency, and `tool` combines them into a measurement. Before anything is
measured, `preparation` prefills, preconditions or discards a data set.
"""
