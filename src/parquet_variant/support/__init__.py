"""What every layer uses: choices of options, lazily loaded names, and state that survives a fork."""
