"""What a query asks for and what statistics let it skip, whatever the format."""
