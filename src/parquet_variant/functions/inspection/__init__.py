"""Questions about whole values: type, schema, equality."""
