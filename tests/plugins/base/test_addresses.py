"""URLs and texts without credentials."""

import pytest
from streamwarden.base.addresses import address_of, masked


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("rmi://reader:se/sa@me@h:9999/jmxrmi answers", "rmi://h:9999/jmxrmi answers"),
        ("no http://t@h/a?token=secret#f, and https://u:p@g/", "no http://h/a and https://g/"),
        ("'postgresql://u:p@h1:1,h2:2/d?password=x' and \"http://h\"", "'postgresql://h1:1,h2:2/d' and \"http://h\""),
        ("u:p@h:1 is no address", "h:1 is no address"),
        (
            "jdbc:sqlserver://h:1433;user=sa;Password=s3;x=y refused",
            "jdbc:sqlserver://h:1433;user=…;Password=…;x=y refused",
        ),
        ("ask ops@example.com about http://h/x", "ask ops@example.com about http://h/x"),
    ],
)
def test_a_text_is_shown_without_credentials(text: str, expected: str) -> None:
    assert masked(text) == expected


def test_an_address_is_shown_without_credentials() -> None:
    assert address_of("http://u:p@h:8778/jolokia?token=s#f") == "http://h:8778/jolokia"
    assert "secret" not in address_of("http://u:secret@[bad/x?t=secret")
