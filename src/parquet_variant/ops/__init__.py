"""The public operations over values and arrays: one a module, whatever the layout."""
