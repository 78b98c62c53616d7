"""New values made of others: fields set, inserted and taken out."""
