"""The reasons of conditions and of aborted attempts, which conditions, events, decisions and docs share."""
