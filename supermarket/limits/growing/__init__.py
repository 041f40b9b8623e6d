"""Growing choices: the limits of Bhamidi, Budhiraja & Dewaskar."""
