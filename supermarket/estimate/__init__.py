"""Intervals, autocorrelation and control variates: what samples say."""
