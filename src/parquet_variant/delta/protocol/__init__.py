"""What a table asks of its readers and writers: features, properties, schema."""
