"""Made-up data sets of awkward shapes: package metadata, FHIR bundles, browser-compatibility data.

Owns making them, always the same from a seed; their fields and type conflicts are those of the real formats. Leaves
what is measured to `works`.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from typing import Any

__all__ = ["HETEROGENEOUS"]

_TEXT = (
    "async stream parse core util http json fast tiny router cache queue event log color path glob table view state "
    "schema token client server plugin loader theme form chart date lock merge diff watch shell test mock"
)
_WORDS = _TEXT.split()
_BROWSERS = (
    "chrome chrome_android deno edge firefox firefox_android ie nodejs oculus opera opera_android safari "
    "safari_ios samsunginternet_android webview_android"
)


def packages(rows: int = 600) -> Iterator[dict[str, Any]]:
    """Documents of a package registry: version numbers are keys, and each leads to a manifest."""
    dice = random.Random("packages")
    names = [f"{a}-{b}" for a in _WORDS for b in _WORDS]
    people = [(f"{a}{n}", f"{a}{n}@example.org") for n, a in enumerate(_WORDS * 4)]
    for name in dice.sample(names, rows):
        owner = dice.choice(people)
        repository = {"type": "git", "url": f"git+https://github.com/{owner[0]}/{name}.git"}
        about = " ".join(dice.choices(_WORDS, k=dice.randint(4, 12)))
        versions, time = {}, {"created": _moment(dice), "modified": _moment(dice)}
        number = [dice.randint(0, 2), 0, 0]
        needs = {dice.choice(names): f"^{dice.randint(0, 9)}.{dice.randint(0, 9)}.0" for _ in range(dice.randint(0, 8))}
        for _ in range(int(dice.paretovariate(0.9) % 60) + 1):
            at = dice.choice((0, 1, 1, 2, 2, 2, 2))
            number[at:] = [number[at] + 1, *[0] * (2 - at)]
            version = ".".join(map(str, number)) + (f"-beta.{dice.randint(0, 9)}" if dice.random() < 0.1 else "")
            versions[version] = _manifest(dice, name, version, about, repository, owner, needs)
            time[version] = _moment(dice)
        latest = list(versions)[-1]
        tags = {"latest": latest} | ({"next": latest} if dice.random() < 0.2 else {})
        yield {
            "_id": name, "_rev": f"{len(versions)}-{dice.getrandbits(128):032x}", "name": name,
            "description": about, "dist-tags": tags, "versions": versions, "time": time,
            "maintainers": [dict(zip(("name", "email"), person, strict=True)) for person in (owner,)],
            "author": {"name": owner[0]} if dice.random() < 0.8 else owner[0],
            "repository": repository if dice.random() < 0.9 else repository["url"],
            "readme": "# " + name + "\n\n" + " ".join(dice.choices(_WORDS, k=dice.randint(50, 600))),
            "readmeFilename": "README.md",
            "license": "MIT" if dice.random() < 0.9 else {"type": "MIT", "url": "https://opensource.org"},
            "users": {dice.choice(people)[0]: True for _ in range(dice.randint(0, 6))},
        }  # fmt: skip


def _manifest(
    dice: random.Random, name: str, version: str, about: str, repository: Any, owner: Any, needs: Any
) -> dict[str, Any]:
    found = {
        "name": name, "version": version, "description": about, "main": "index.js",
        "scripts": {"test": "node test.js", "build": "tsc -p ."}, "repository": repository,
        "keywords": dice.sample(_WORDS, dice.randint(0, 5)), "author": {"name": owner[0], "email": owner[1]},
        "license": "MIT", "bugs": {"url": f"https://github.com/{owner[0]}/{name}/issues"}, "dependencies": needs,
        "devDependencies": {dice.choice(_WORDS): "*" for _ in range(3)}, "_id": f"{name}@{version}",
        "engines": {"node": f">={dice.choice((8, 10, 12, 14))}"}, "_npmVersion": f"6.{dice.randint(0, 14)}.0",
        "_npmUser": {"name": owner[0], "email": owner[1]},
        "dist": {
            "shasum": f"{dice.getrandbits(160):040x}", "fileCount": dice.randint(3, 80),
            "tarball": f"https://registry.example.org/{name}/-/{name}-{version}.tgz",
            "unpackedSize": dice.randint(2000, 900000), "integrity": f"sha512-{dice.getrandbits(512):0128x}",
        },
        "maintainers": [{"name": owner[0], "email": owner[1]}], "_hasShrinkwrap": False,
    }  # fmt: skip
    return {key: value for key, value in found.items() if dice.random() < 0.97 or key in ("name", "version", "dist")}


def bundles(rows: int = 700) -> Iterator[dict[str, Any]]:
    """FHIR bundles: the kind of a resource decides its fields; codes, extensions and what is contained are arrays."""
    dice = random.Random("bundles")
    for number in range(rows):
        patient = f"urn:uuid:{_uuid(dice)}"
        kinds = ["Patient", *dice.choices(list(_RESOURCES), [8, 2, 3, 2, 1], k=dice.randint(2, 30))]
        entries = []
        for kind in kinds:
            url = patient if kind == "Patient" else f"urn:uuid:{_uuid(dice)}"
            resource = _patient(dice, url) if kind == "Patient" else _RESOURCES[kind](dice, patient)
            resource = {"resourceType": kind, "id": url.removeprefix("urn:uuid:")} | resource
            entries.append({"fullUrl": url, "resource": resource, "request": {"method": "POST", "url": kind}})
        yield {
            "resourceType": "Bundle", "id": f"b{number}", "type": "transaction", "timestamp": _moment(dice),
            "entry": entries,
        }  # fmt: skip


def _patient(dice: random.Random, url: str) -> dict[str, Any]:
    race = {"system": "urn:oid:2.16.840.1.113883.6.238", "code": f"21{dice.randint(0, 99):02}", "display": "Race"}
    found: dict[str, Any] = {
        "extension": [
            {
                "url": "http://hl7.org/fhir/us/core/StructureDefinition/us-core-race",
                "extension": [{"url": "ombCategory", "valueCoding": race}, {"url": "text", "valueString": "Race"}],
            },
            {"url": "http://example.org/birthPlace", "valueAddress": {"city": dice.choice(_WORDS), "country": "US"}},
            {"url": "http://example.org/qaly", "valueDecimal": round(dice.random() * 80, 6)},
        ][: dice.randint(1, 3)],
        "identifier": [{"system": f"http://hospital.example.org/{n}", "value": _uuid(dice)} for n in range(3)],
        "name": [{"use": "official", "family": dice.choice(_WORDS), "given": dice.sample(_WORDS, 2)}],
        "gender": dice.choice(("male", "female")),
        "birthDate": _moment(dice)[:10],
        "address": [{"line": [f"{dice.randint(1, 999)} Main"], "city": dice.choice(_WORDS), "state": "MA"}],
    }
    return found | ({"deceasedBoolean": False} if dice.random() < 0.5 else {"deceasedDateTime": _moment(dice)})


def _observation(dice: random.Random, patient: str) -> dict[str, Any]:
    kind = dice.choice(("8302-2", "29463-7", "85354-9", "72166-2"))
    found: dict[str, Any] = {
        "status": "final",
        "category": [_concept("http://terminology.hl7.org/CodeSystem/observation-category", "vital-signs")],
        "code": _concept("http://loinc.org", kind),
        "subject": {"reference": patient},
        "encounter": {"reference": f"urn:uuid:{_uuid(dice)}"},
        "effectiveDateTime": _moment(dice),
        "issued": _moment(dice),
    }
    if kind == "85354-9":
        return found | {
            "component": [
                {"code": _concept("http://loinc.org", code), "valueQuantity": _quantity(dice, "mm[Hg]")}
                for code in ("8462-4", "8480-6")
            ]
        }
    if kind == "72166-2":
        return found | {"valueCodeableConcept": _concept("http://snomed.info/sct", "266919005")}
    return found | {"valueQuantity": _quantity(dice, "cm")}


def _encounter(dice: random.Random, patient: str) -> dict[str, Any]:
    return {
        "status": "finished",
        "class": {"system": "http://terminology.hl7.org/CodeSystem/v3-ActCode", "code": dice.choice(("AMB", "EMER"))},
        "type": [_concept("http://snomed.info/sct", str(dice.choice((162673000, 185345009))))],
        "subject": {"reference": patient, "display": " ".join(dice.sample(_WORDS, 2))},
        "participant": [{"individual": {"reference": f"urn:uuid:{_uuid(dice)}"}, "period": _period(dice)}],
        "period": _period(dice),
    }


def _condition(dice: random.Random, patient: str) -> dict[str, Any]:
    return {
        "clinicalStatus": _concept("http://terminology.hl7.org/CodeSystem/condition-clinical", "active"),
        "code": _concept("http://snomed.info/sct", str(dice.randint(10**7, 10**7 + 60))),
        "subject": {"reference": patient},
        "onsetDateTime": _moment(dice),
    } | ({"note": [{"text": " ".join(dice.choices(_WORDS, k=9))}]} if dice.random() < 0.2 else {})


def _medication(dice: random.Random, patient: str) -> dict[str, Any]:
    drug = _concept("http://www.nlm.nih.gov/research/umls/rxnorm", str(dice.randint(100, 180)))
    found: dict[str, Any] = {
        "status": "active",
        "subject": {"reference": patient},
        "dosageInstruction": [
            {"sequence": 1, "asNeededBoolean": True, "doseAndRate": [{"doseQuantity": {"value": 1}}]}
        ],
    }
    if dice.random() < 0.4:
        inside = {"resourceType": "Medication", "id": "m1", "code": drug}
        return found | {"contained": [inside], "medicationReference": {"reference": "#m1"}}
    return found | {"medicationCodeableConcept": drug}


def _claim(dice: random.Random, patient: str) -> dict[str, Any]:
    lines = [
        {"sequence": n, "productOrService": _concept("http://snomed.info/sct", str(dice.randint(100, 140))),
         "net": {"value": round(dice.random() * 900, 2), "currency": "USD"}}
        for n in range(dice.randint(1, 6))
    ]  # fmt: skip
    return {"status": "active", "patient": {"reference": patient}, "billablePeriod": _period(dice), "item": lines}


_RESOURCES: dict[str, Callable[[random.Random, str], dict[str, Any]]] = {
    "Observation": _observation, "Encounter": _encounter, "Condition": _condition, "MedicationRequest": _medication,
    "Claim": _claim,
}  # fmt: skip


def compatibility(rows: int = 12_000) -> Iterator[dict[str, Any]]:
    """Features of a web platform: what a browser supports is an object or an array of them, a version text or not."""
    dice = random.Random("compatibility")
    browsers = _BROWSERS.split()
    for number in range(rows):
        interface = dice.choice(_WORDS).capitalize() + dice.choice(_WORDS).capitalize()
        member = dice.choice(_WORDS)
        support = {
            browser: "mirror" if browser.endswith(("_android", "_ios")) and dice.random() < 0.6 else _support(dice)
            for browser in browsers
            if browser not in ("deno", "nodejs", "oculus") or dice.random() < 0.3
        }
        page = f"https://drafts.example.org/{interface.lower()}/#dom-{member}"
        yield {
            "path": f"api.{interface}.{member}{number}",
            "mdn_url": f"https://developer.mozilla.org/docs/Web/API/{interface}/{member}",
            "spec_url": page if dice.random() < 0.9 else [page, page + "-2"],
            "support": support,
            "status": {
                "experimental": dice.random() < 0.1, "standard_track": dice.random() < 0.9, "deprecated": False,
            },
        } | ({"tags": [f"web-features:{member}"]} if dice.random() < 0.7 else {})  # fmt: skip


def _support(dice: random.Random) -> Any:
    def one() -> dict[str, Any]:
        added = dice.choices((str(dice.randint(1, 130)), False, True, None, "preview", "≤18"), (80, 12, 3, 2, 1, 2))[0]
        found: dict[str, Any] = {"version_added": added}
        if dice.random() < 0.06:
            found["version_removed"] = str(dice.randint(20, 140))
        if dice.random() < 0.06:
            found["notes"] = "See bug " + str(dice.randint(1000, 99999)) if dice.random() < 0.7 else ["Bug.", "See."]
        if dice.random() < 0.05:
            found["flags"] = [{"type": "preference", "name": f"dom.{dice.choice(_WORDS)}", "value_to_set": "true"}]
        if dice.random() < 0.04:
            found[dice.choice(("prefix", "alternative_name"))] = dice.choice(("webkit", "moz", "-webkit-"))
        if dice.random() < 0.05:
            found["partial_implementation"] = True
        return found

    return one() if dice.random() < 0.72 else [one() for _ in range(dice.randint(2, 3))]


def _concept(system: str, code: str) -> dict[str, Any]:
    return {"coding": [{"system": system, "code": code, "display": f"Term {code}"}], "text": f"Term {code}"}


def _quantity(dice: random.Random, unit: str) -> dict[str, Any]:
    value = round(dice.random() * 200, dice.choice((0, 1, 2, 6)))
    return {"value": value, "unit": unit, "system": "http://unitsofmeasure.org", "code": unit}


def _period(dice: random.Random) -> dict[str, str]:
    return {"start": _moment(dice), "end": _moment(dice)}


def _moment(dice: random.Random) -> str:
    year, month, day = dice.randint(2010, 2025), dice.randint(1, 12), dice.randint(1, 28)
    clock = f"{dice.randint(0, 23):02}:{dice.randint(0, 59):02}:{dice.randint(0, 59):02}.{dice.randint(0, 999):03}Z"
    return f"{year}-{month:02}-{day:02}T{clock}"


def _uuid(dice: random.Random) -> str:
    text = f"{dice.getrandbits(128):032x}"
    return "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))


def _ndjson(rows: Iterator[dict[str, Any]]) -> bytes:
    return "".join(json.dumps(row, ensure_ascii=False, separators=(",", ":")) + "\n" for row in rows).encode()


# By name, what makes the text.
HETEROGENEOUS: dict[str, Callable[[], bytes]] = {
    "packages": lambda: _ndjson(packages()),
    "fhir_bundles": lambda: _ndjson(bundles()),
    "browser_compatibility": lambda: _ndjson(compatibility()),
}
