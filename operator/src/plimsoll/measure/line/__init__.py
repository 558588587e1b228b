"""The line: how much load a storage carries before latency breaks. Runs do not use it yet."""
