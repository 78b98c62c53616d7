"""The columnar encoding of a Variant column: encoding, storing, decoding, and reading by path without decoding."""
