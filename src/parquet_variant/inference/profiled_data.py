"""`ProfiledData`: the data that the rows of a profile belong to, so that the size of its files can be estimated."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ProfiledData:
    """The data that some profiled rows are all of, or a sample of.

    Parameters
    ----------
    share
        The share of the data that the rows are.
    files
        Estimated number of files to which the data will be written.
    compressed_bytes
        Estimated size of the text of the rows after compression; 0 if unknown.

    Examples
    --------
    >>> ProfiledData(0.125).merge(10, ProfiledData(0.125, files=2), 10)
    ProfiledData(share=0.125, files=2, compressed_bytes=0.0)
    """

    share: float = 1.0
    files: int = 1
    compressed_bytes: float = 0.0

    def merge(self, rows: int, other: ProfiledData, other_rows: int) -> ProfiledData:
        """Return the data of both parts, which have these numbers of rows."""
        if self.share == other.share:
            share = self.share
        else:
            share = (rows + other_rows) / (rows / self.share + other_rows / other.share)
        compressed = self.compressed_bytes + other.compressed_bytes
        return ProfiledData(
            share,
            max(self.files, other.files),
            compressed if self.compressed_bytes and other.compressed_bytes else 0.0,
        )
