"""Any law of the service time: the cavity process of Bramson, Lu & Prabhakar."""
