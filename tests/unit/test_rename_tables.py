"""Every column with a URL, or a key that is made of one, has its place when a root moves."""

from lcc_scrapy.db import schema
from lcc_scrapy.db import tables as t
from lcc_scrapy.db.columns import OF_THE_LCC

RENAMED = {
    "lccurl": {"urlkey", "curl", "burl", "furl", "final_url", "furlkey"},
    "qdb": {"urlkey", "curl", "burl", "furl", "furlkey"},
    "outcomes": {"urlkey", "curl", "furl"},
    "spidered": {"furlkey", "furl", "parent"},
    "irrelevant": {"urlkey", "furl", "furlkey"},
    "versions": {"urlkey"},
    "links": {"urlkey"},
    "suspects": {"urlkey"},
    "aci": {"urlkey"},
    "owners": {"furlkey"},
    "sources": {"url"},
    "sourcefiles": {"url"},
    "sourceurls": {"furlkey"},
    "proots": {"root"},
    "unwanted": {"urlkey"},
}
"""What ``lcc provider rename-root`` changes, or forgets."""

STAYS = {
    "tombstones": ({"urlkey", "curl", "furl"}, "what was removed had that name"),
    "urlerrors": ({"url"}, "what its provider was told, in its own words"),
    "versions": ({"final_url"}, "where an earlier content came from"),
    "sources": ({"hub", "topic"}, "a subscription, until it is renewed"),
    "psets": ({"upto"}, "how far a walk along keys is"),
    "overtaking": ({"urlkey"}, "of sets that are under way, and none are"),
    "fetches": ({"urlkey"}, "of fetches that are under way, and none are"),
    "aequeue": ({"urlkey"}, "the feed tells the annotation engine of both"),
    "aci": ({"uri"}, "what owners were told"),
    "urd": ({"uri", "run_upto"}, "what an owner wrote"),
    "recipients": ({"address"}, "of owners"),
}


def test_each_url_and_each_key_is_renamed_or_stays_for_a_reason():
    found = {
        (table.name, column.name)
        for table in schema.tables_of()
        for column in table.columns
        if table.info != OF_THE_LCC and (column.type is t.Url or column.type is t.Key)
    }
    renamed = {(name, column) for name, columns in RENAMED.items() for column in columns}
    stays = {(name, column) for name, (columns, _) in STAYS.items() for column in columns}
    assert not renamed & stays
    assert renamed | stays == found
