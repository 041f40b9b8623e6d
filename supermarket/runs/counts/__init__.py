"""The chain of counts: engines that find its events."""
