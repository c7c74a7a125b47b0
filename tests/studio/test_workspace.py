"""Addresses of the studio."""

from deniable.studio.workspace import address


def test_addresses_are_quoted_and_empty_fields_left_out():
    assert address("/table", path="a b/é&x=1.csv") == "/table?path=a+b%2F%C3%A9%26x%3D1.csv"
    assert address("/table", path="") == "/table"
    assert address("/run/x y") == "/run/x%20y"
    assert address("/schema", schema="s", column=0) == "/schema?schema=s&column=0"
