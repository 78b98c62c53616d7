"""What a table requires of its readers and writers: actions, features, properties, schema."""
