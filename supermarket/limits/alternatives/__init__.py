"""What would be so if a statement were not, and which of its hypotheses fail at a point.

One module per part of the book. The ledger (`supermarket.experiment.statements`) names these
functions; they take parameters of a verdict by name. An alternative also takes `predicted` and
returns the nearest values that an equality is to be told from; a check of hypotheses returns, in
words, those that do not hold.
"""
