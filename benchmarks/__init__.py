"""Side-by-side measurements against peers: `python -m benchmarks.run [NAME …]`, or `make bench ONLY=NAME`."""
