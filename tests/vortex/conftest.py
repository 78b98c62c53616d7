"""What the tests of this layer share: the corpus, and the lines of the data sets."""

from __future__ import annotations

import pytest

from shredded_corpus import READABLE, path

DATA_SETS = {
    "gharchive": ["$.id", "$.actor.login", "$.payload.commits[*].sha", "$.payload.size"],
    "cve_v5": ["$.cveMetadata.cveId", "$.containers.cna.affected[*].vendor", "$.dataVersion"],
    "windows_events": ["$.EventID", "$.Hostname", "$['@timestamp']"],
    "usgs_earthquakes": ["$.properties.mag", "$.geometry.coordinates[*]", "$.id"],
}


def pytest_generate_tests(metafunc):
    if "corpus_file" in metafunc.fixturenames:
        metafunc.parametrize("corpus_file", [path(case) for case in READABLE], ids=lambda file: file.stem)
    if "data_set" in metafunc.fixturenames:
        metafunc.parametrize("data_set", sorted(DATA_SETS), indirect=True)


@pytest.fixture
def data_set(request, variant_test_data):
    """Every third JSON line of a data set, and paths to ask for."""
    directory = variant_test_data / "data"
    plain = directory / f"{request.param}.ndjson"
    if plain.is_file():
        return plain.read_text().splitlines()[::3], DATA_SETS[request.param]
    zstandard = pytest.importorskip("zstandard", reason="zstandard is not installed")
    with (directory / f"{request.param}.ndjson.zst").open("rb") as file:
        text = zstandard.ZstdDecompressor().stream_reader(file).read().decode()
    return text.splitlines()[::3], DATA_SETS[request.param]
