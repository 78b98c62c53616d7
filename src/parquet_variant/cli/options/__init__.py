"""Options and arguments that commands share, and what is made of them."""
