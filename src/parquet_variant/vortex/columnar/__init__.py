"""The columnar encoding of a Variant column: built, stored, decoded, and read by path without decoding."""
