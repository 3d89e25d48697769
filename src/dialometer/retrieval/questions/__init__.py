"""What is asked: how questions begin, what they refer to, and groups of them."""
