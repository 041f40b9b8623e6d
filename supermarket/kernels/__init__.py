"""What makes compiled code quick: how it is kept, what it is made of, the loop of all policies."""
