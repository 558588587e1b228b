"""The steps of a look at a `BenchmarkSuite`: what they observe, and the requests that they perform."""
