"""JSON in, shredded tables out: sources, tasks, jobs; the same on every engine and for every destination."""
