"""The checker of the documentation site finds what it is for, and nothing else."""

import pytest

import check_site

GOOD = {
    "index.html": '<h1 id="top">x</h1><a href="guide/a.html#part">a</a><a href="#top">t</a>'
    '<a href="https://example.org">out</a>'
    '<img src="_static/a%20b.svg" srcset="_static/a%20b.svg 2x">'
    '<img src="data:image/png;base64,AAAA">',
    "guide/a.html": '<h2 id="part">y</h2><a href="../index.html">up</a>'
    '<link rel="stylesheet" href="../_static/site.css">',
    "_static/a b.svg": "<svg/>",
    "_static/site.css": "body { background: url('a b.svg') }",
}


def faults(folder, changed=None):
    for name, text in (GOOD | (changed or {})).items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return check_site.faults_of_site(folder)


def test_a_site_without_faults_has_none(tmp_path):
    assert faults(tmp_path) == []
    assert check_site.main(str(tmp_path)) == 0


@pytest.mark.parametrize(
    ("name", "text", "fault"),
    [
        ("b.html", '<a href="no.html">x</a>', "b.html: no.html leads nowhere"),
        ("b.html", '<a href="guide/a.html#no">x</a>', "b.html: guide/a.html#no has no such anchor"),
        ("b.html", '<a href="#no">x</a>', "b.html: #no has no such anchor"),
        ("guide/b.html", '<img src="a.svg">', "guide/b.html: a.svg leads nowhere"),
        ("b.html", '<img srcset="a.svg 2x">', "b.html: a.svg leads nowhere"),
        (
            "b.html",
            '<script src="https://a.org/x.js"></script>',
            "b.html: loads https://a.org/x.js",
        ),
        ("b.html", '<script src="//a.org/x.js"></script>', "b.html: loads //a.org/x.js"),
        ("b.html", '<link href="http://a.org/f.css">', "b.html: loads http://a.org/f.css"),
        ("b.html", '<p style="background: url(//a.org/x)">', "b.html: loads //a.org/x"),
        ("b.css", "@import 'https://a.org/f.css';", "b.css: loads https://a.org/f.css"),
        ("b.css", "src: url( https://a.org/f.woff )", "b.css: loads https://a.org/f.woff"),
    ],
)
def test_a_planted_fault_is_found(tmp_path, capsys, name, text, fault):
    assert faults(tmp_path, {name: text}) == [fault]
    assert check_site.main(str(tmp_path)) == 1
    assert fault in capsys.readouterr().err


def test_a_folder_without_pages_is_a_fault(tmp_path):
    assert check_site.faults_of_site(tmp_path) == [f"{tmp_path}: no page"]
