"""The limit of many queues with exponential service, its corrections and relatives."""
