"""Speed and memory of the chains, as ratios against C twins and against other software."""
