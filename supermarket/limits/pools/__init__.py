"""Server pools and utility: what Goldsztajn, Borst & van Leeuwaarden prove."""
