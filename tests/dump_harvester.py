"""A harvester of dumps, on the resync package of PyPI: run it with a Python that has that.

``python dump_harvester.py TOKEN CAPABILITY_LIST CAPABILITY SINCE PACKAGES COPY`` takes the packages of a dump
that end after ``SINCE`` into the folder ``PACKAGES``, and applies them to the files in ``COPY``, whose names are
docids. It prints the time to go on from, and what it did, as JSON.
"""

import json
import shutil
import sys
import zipfile
from pathlib import Path

from resync.capability_list import CapabilityList
from resync.change_dump import ChangeDump
from resync.change_dump_manifest import ChangeDumpManifest
from resync.hashes import Hashes
from resync.resource_dump import ResourceDump
from resync.resource_dump_manifest import ResourceDumpManifest
from resync.url_or_file_open import set_url_or_file_open_config, url_or_file_open

DUMPS = {
    "resourcedump": (ResourceDump, ResourceDumpManifest),
    "changedump": (ChangeDump, ChangeDumpManifest),
}


def harvest(capabilities, capability, since, packages, copy):
    offered = CapabilityList()
    offered.read(capabilities)
    make_dump, make_manifest = DUMPS[capability]
    dump = make_dump()
    dump.read(offered.capability_info(capability).uri)
    done = {"until": dump.md.get("md_until"), "packages": 0, "updated": 0, "deleted": 0}
    for package in dump:
        assert package.mime_type == "application/zip"
        outside = make_manifest()
        outside.read(package.contents)
        if outside.md.get("md_until", "later") <= since:
            continue
        path = packages / package.uri.rsplit("/", 1)[1]
        with url_or_file_open(package.uri) as answer, path.open("wb") as out:
            shutil.copyfileobj(answer, out)
        with zipfile.ZipFile(path) as archive:
            inside = make_manifest()
            inside.parse(fh=archive.open("manifest.xml"))
            apply(archive, list(inside), copy, done)
        assert inside.as_xml() == outside.as_xml()
        done["packages"] += 1
    return done


def apply(archive, resources, copy, done):
    for resource in resources:
        target = copy / resource.uri.split("/")[-2]
        if resource.change == "deleted":
            assert resource.path is None
            target.unlink()
            done["deleted"] += 1
            continue
        target.write_bytes(archive.read(resource.path.removeprefix("/")))
        assert Hashes(["sha-256"], target).sha256 == resource.sha256
        assert target.stat().st_size == resource.length
        done["updated"] += 1


if __name__ == "__main__":
    token, listed, wanted, after, zips, files = sys.argv[1:]
    set_url_or_file_open_config("bearer_token", token)
    print(json.dumps(harvest(listed, wanted, after, Path(zips), Path(files))))
