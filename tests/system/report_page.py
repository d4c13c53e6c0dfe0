#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Reads a report's page with a parser that knows nothing of what wrote it.

report_page.py PAGE [COUNTS]: the page must be well-formed and self-contained; its table
of layers must have the figures that follow from COUNTS, {"counts": [[...], ...]}.
"""
import html.parser
import json
import sys

VOID = {"meta", "img", "br", "link", "input", "hr"}


class Page(html.parser.HTMLParser):
    def __init__(self):
        super().__init__()
        self.open = []
        self.rows = {"layer": [], "request": []}
        self.row = self.cell = None
        self.text = {}
        self.ids = []

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        assert tag not in ("script", "iframe", "object", "embed", "base", "link", "form"), tag
        for name, value in attributes.items():
            assert not name.startswith("on"), (tag, name)
            if name in ("src", "srcset", "data", "action"):
                assert value.startswith("data:image/png;base64,"), (tag, name)
            if name == "href":
                assert value.startswith("#"), value
            if name == "id":
                self.ids.append(value)
        if tag == "tr":
            self.row = attributes.get("class", "").split(" ")[0]
            if self.row in self.rows:
                self.rows[self.row].append([])
        if tag in ("td", "th") and self.row in self.rows:
            self.rows[self.row][-1].append("")
            self.cell = True
        if tag not in VOID:
            self.open.append((tag, attributes.get("id")))

    def handle_endtag(self, tag):
        assert self.open and self.open[-1][0] == tag, (tag, self.open[-3:])
        self.open.pop()
        if tag in ("td", "th"):
            self.cell = None
        if tag == "tr":
            self.row = None

    def handle_data(self, data):
        if self.cell:
            self.rows[self.row][-1][-1] += data
        for _, name in self.open:
            if name:
                self.text[name] = self.text.get(name, "") + data


def number(text):
    return float(text.replace(",", "").rstrip(" %"))


def check_layers(rows, counts):
    assert len(rows) == len(counts), (len(rows), len(counts))
    for row, layer in zip(rows, counts):
        total, most = sum(layer), max(layer)
        mean = total / len(layer)
        assert abs(number(row[2]) - most / mean) < 0.00051, (row, most / mean)
        # With so many tokens chance gives no more than twice the mean.
        assert row[0].endswith(" uneven") == (most / mean > 2), row
        assert int(row[3]) == layer.index(most), row
        assert abs(number(row[4]) - 100 * most / total) < 0.0051, row
        assert abs(number(row[5]) - 100 * sum(sorted(layer)[-8:]) / total) < 0.051, row
        difference = sum(abs(a - b) for a in layer for b in layer)
        gini = difference / (2 * len(layer) ** 2 * mean)
        assert abs(number(row[6]) - gini) < 0.00051, (row, gini)
        assert int(row[7]) == sum(1 for n in layer if n == 0), row


page = Page()
text = open(sys.argv[1], encoding="utf-8", errors="strict").read()
page.feed(text)
page.close()
assert not page.open, page.open
assert len(page.ids) == len(set(page.ids)), page.ids
assert "default-src 'none'" in text
if len(sys.argv) > 2:
    recording = json.load(open(sys.argv[2]))
    check_layers(page.rows["layer"], recording["counts"])
print(json.dumps({"text": page.text, "requests": page.rows["request"],
                  "layers": page.rows["layer"]}))
