"""What is asked: models, frozen and checked once, which predictions and runs take first."""
