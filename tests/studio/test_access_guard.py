"""Who is let in: one browser, by a link that works once, from our own pages only."""

import re
import socket

import pytest

from deniable.studio.access_guard import Access, local_name, token_of
from deniable.studio.web_app import GET, POST
from studio_client import HOST, ORIGIN, PORT, text_of

EVERYWHERE = "0.0.0.0"  # noqa: S104 - nothing listens here
CELLS = ("kelpfarmer", "windmill", "axolotl")
ALL_PATHS = [
    *(("GET", path) for path in GET),
    *(("POST", path) for path in POST),
]


@pytest.mark.parametrize(("method", "path"), ALL_PATHS)
def test_without_the_cookie_no_page_is_served(studio, method, path):
    reply = studio.new_client().request(
        method, path.replace("{id}", "x").replace("{path:path}", "x")
    )
    assert reply.status_code == 403
    assert "link that the terminal shows" in reply.text
    assert not any(cell in reply.text for cell in CELLS)


def test_a_wrong_cookie_is_no_cookie(studio):
    for value in ("", "0" * 64, "x" * 5000):
        client = studio.new_client()
        client.cookies.set(studio.space.access.cookie, value)
        assert client.get("/history").status_code == 403


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        f"evil.example:{PORT}",
        "127.0.0.1",
        "127.0.0.1:80",
        f"{HOST}.evil.example",
        "",
    ],
)
def test_another_host_is_refused_even_with_the_cookie(studio, host):
    reply = studio.client.get("/table?path=table.csv", headers={"host": host})
    assert reply.status_code == 421
    assert not any(cell in reply.text for cell in CELLS)


def test_localhost_is_the_same_host(studio):
    assert studio.client.get("/history", headers={"host": f"localhost:{PORT}"}).status_code == 200


@pytest.mark.parametrize(
    "origin",
    [
        "https://evil.example",
        "null",
        "",
        f"https://{HOST}",
        "http://127.0.0.1:1",
        f"{ORIGIN}.evil.example",
    ],
)
def test_a_form_from_another_origin_changes_nothing(studio, folder, origin):
    before = sorted(folder.rglob("*"))
    reply = studio.client.post("/draft", data={"path": "table.csv"}, headers={"origin": origin})
    assert reply.status_code == 403
    assert "Nothing was changed" in reply.text
    assert sorted(folder.rglob("*")) == before


def test_a_form_without_an_origin_is_refused(studio):
    client = studio.client
    del client.headers["origin"]
    assert client.post("/draft", data={"path": "table.csv"}).status_code == 403


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_a_page_of_another_port_or_site_cannot_embed_or_fetch_ours(studio, site):
    fetched = {"sec-fetch-site": site, "sec-fetch-mode": "cors"}
    assert studio.client.get("/history", headers=fetched).status_code == 403
    followed = {"sec-fetch-site": site, "sec-fetch-mode": "navigate"}
    assert studio.client.get("/history", headers=followed).status_code == 200
    assert studio.client.post("/draft", headers=followed).status_code == 403


def test_the_link_works_once_and_a_second_use_announces_a_new_one(studio):
    link = studio.space.access.new_link()
    path = link.removeprefix(ORIGIN)
    first, second = studio.new_client(), studio.new_client()
    reply = first.get(path)
    assert reply.status_code == 200
    flags = reply.headers["set-cookie"].lower()
    assert "httponly" in flags
    assert "samesite=strict" in flags
    assert first.get("/history").status_code == 200
    reply = second.get(path)
    assert reply.status_code == 403
    assert "used already" in reply.text
    [new] = studio.announced
    assert new not in (link, "")
    assert second.get(new.removeprefix(ORIGIN)).status_code == 200


def test_a_wrong_token_lets_nobody_in(studio):
    access = Access("127.0.0.1", PORT)
    assert access.trade("") is None
    token = token_of(access.new_link().partition("?")[2])
    assert access.trade(token[:-1] + "g") is None
    assert access.trade(token) is not None
    assert access.trade(token) is None
    assert studio.new_client().get("/enter?token=0").status_code == 403
    assert studio.new_client().get("/enter").status_code == 403


def test_the_studio_can_be_opened_in_a_second_browser(studio):
    page = studio.post("/another")
    found = re.search(rf"{ORIGIN}(/enter\?token=[0-9a-f]+)", page)
    assert found is not None
    second = studio.new_client()
    assert second.get(found[1]).status_code == 200
    assert second.get("/history").status_code == 200
    assert studio.client.get("/history").status_code == 200


@pytest.mark.parametrize(
    "path",
    ["/history", "/table?path=table.csv", "/absent", "/static/studio.css", "/table?path=../x"],
)
def test_every_response_has_the_headers(studio, path):
    headers = studio.client.get(path).headers
    assert headers["cache-control"] == "no-store"
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "same-origin"
    assert headers["cross-origin-resource-policy"] == "same-origin"
    policy = headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert "frame-ancestors 'none'" in policy
    assert not re.search(r"https?:", policy)


def test_a_refused_request_has_them_too(studio):
    headers = studio.new_client().get("/history").headers
    assert headers["cache-control"] == "no-store"
    assert "default-src 'none'" in headers["content-security-policy"]


def test_a_local_studio_has_a_name_of_its_own_and_answers_to_no_other():
    """The cookie of 127.0.0.1 would be sent to the server of anyone on any port there."""
    name = local_name()
    assert re.fullmatch(r"studio-[0-9a-f]{32}\.localhost", name)
    assert name != local_name()
    access = Access("127.0.0.1", PORT, name)
    assert access.hosts == {f"{name}:{PORT}"}
    assert access.new_link().startswith(f"http://{name}:{PORT}/enter?token=")
    for other in (HOST, f"localhost:{PORT}", f"{local_name()}:{PORT}", f"{name}:1", name):
        assert access.refusal("GET", "/enter", {"host": other}, "127.0.0.1") == (421, "host")
    assert access.refusal("GET", "/enter", {"host": f"{name}:{PORT}"}) is None


def test_all_addresses_of_this_computer_can_be_served_and_foreign_names_cannot():
    access = Access(EVERYWHERE, PORT)
    name = socket.gethostname().lower()
    own = [f"{name}:{PORT}", HOST, f"localhost:{PORT}", f"192.0.2.7:{PORT}"]
    for host in own:
        assert access.refusal("GET", "/enter", {"host": host}, "192.0.2.7") is None, host
        from_page = {"host": host, "origin": f"http://{host}"}
        assert access.refusal("POST", "/enter", from_page, "192.0.2.7") is None, host
        elsewhere = {"host": host, "origin": "http://evil.example"}
        assert access.refusal("POST", "/enter", elsewhere, "192.0.2.7") == (403, "origin")
    for host in (f"evil.example:{PORT}", f"192.0.2.8:{PORT}", "192.0.2.7", "192.0.2.7:1", ""):
        assert access.refusal("GET", "/enter", {"host": host}, "192.0.2.7") == (421, "host"), host
    assert access.serves(f"192.0.2.7:{PORT}", "::ffff:192.0.2.7")
    assert access.serves(f"[2001:db8::1]:{PORT}", "2001:db8::1")
    assert not access.serves(f":{PORT}", "no address")
    assert Access(EVERYWHERE, 80).serves("192.0.2.7", "192.0.2.7")
    assert not Access("192.0.2.9", PORT).serves(f"192.0.2.7:{PORT}", "192.0.2.7")


@pytest.mark.parametrize("token", ["é", "%C3%A9", "%FF", "x&a&b&c&d&e", ""])
def test_an_odd_token_is_a_wrong_one(studio, token):
    assert studio.new_client().get(f"/enter?token={token}").status_code == 403


@pytest.mark.parametrize("odd", ['other={"a":1}', "other", "=", 'a="b', "é=ü", "other=a,b c"])
def test_a_cookie_of_a_neighbour_locks_nobody_out(studio, odd):
    [cookie] = (f"{each.name}={each.value}" for each in studio.client.cookies.jar)
    for sent in (f"{odd}; {cookie}", f"{cookie}; {odd}", f"{cookie.split('=')[0]}=old; {cookie}"):
        headers = {"cookie": sent.encode("latin-1")}
        assert studio.new_client().get("/history", headers=headers).status_code == 200, sent
    odd_value = {"cookie": f"{cookie.split('=')[0]}=é".encode("latin-1")}
    assert studio.new_client().get("/history", headers=odd_value).status_code == 403


def test_a_wrong_token_neither_ends_the_link_nor_prints_another(studio):
    link = studio.space.access.new_link().removeprefix(ORIGIN)
    for _ in range(3):
        assert studio.new_client().get("/enter?token=x").status_code == 403
        assert studio.new_client().head(link).status_code == 403
    assert studio.announced == []
    assert studio.new_client().get(link).status_code == 200
    for _ in range(3):
        assert studio.new_client().get(link).status_code == 403
        studio.new_client().head(link)
    [new] = studio.announced
    studio.post("/another")
    assert studio.new_client().get(new.removeprefix(ORIGIN)).status_code == 200


def test_an_address_of_ipv6_is_written_in_brackets():
    access = Access("::1", 99)
    assert access.hosts == {"[::1]:99"}
    assert access.new_link().startswith("http://[::1]:99/enter?token=")


def test_a_refusal_does_not_tell_what_is_here(studio):
    assert "table.csv" not in text_of(studio.new_client().get("/").text)
