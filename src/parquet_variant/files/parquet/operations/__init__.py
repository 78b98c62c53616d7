"""Operations over whole files: annotate, inspect, optimize, rewrite."""
