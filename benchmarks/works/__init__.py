"""What is compared; one module a kind of work, each with ``works() -> Iterator[Work]``."""
