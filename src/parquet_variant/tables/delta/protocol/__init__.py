"""Requirements of a table for its readers and writers: actions, features, properties, schema."""
