"""The line: how much load a storage carries before latency breaks."""
