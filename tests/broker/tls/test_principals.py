"""Names in certificates become the principals that Apache Kafka gives."""

import base64
from collections.abc import Iterator
from contextlib import suppress

import pytest
from cryptography import x509
from cryptography.x509.name import _ASN1Type
from cryptography.x509.oid import NameOID
from hypothesis import given
from hypothesis import strategies as st

from odradek.broker.security.tls.distinguished_name import name_text, subject_of
from odradek.broker.security.tls.principal_mapping import NoRuleError, PrincipalMapping
from odradek.config.errors import ConfigError
from tests.support.java_program import java_answers

CN, ORG = NameOID.COMMON_NAME, NameOID.ORGANIZATION_NAME
UNIT = NameOID.ORGANIZATIONAL_UNIT_NAME


def name(*parts: tuple[x509.ObjectIdentifier, str] | x509.NameAttribute) -> bytes:
    attributes = [
        part if isinstance(part, x509.NameAttribute) else x509.NameAttribute(*part)
        for part in parts
    ]
    return x509.Name(attributes).public_bytes()


def several_in_one() -> bytes:
    together = x509.RelativeDistinguishedName(
        [x509.NameAttribute(CN, "a"), x509.NameAttribute(NameOID.USER_ID, "b")]
    )
    return x509.Name(
        [x509.RelativeDistinguishedName([x509.NameAttribute(ORG, "o")]), together]
    ).public_bytes()


NAMES = {
    "plain": name((NameOID.COUNTRY_NAME, "DE"), (ORG, "Acme"), (UNIT, "Dev"), (CN, "client")),
    "all that have names": name(
        (NameOID.DOMAIN_COMPONENT, "org"),
        (NameOID.STATE_OR_PROVINCE_NAME, "S"),
        (NameOID.LOCALITY_NAME, "L"),
        (NameOID.STREET_ADDRESS, "Road 1"),
        (NameOID.USER_ID, "u"),
        (CN, "c"),
    ),
    "an address by number": name((CN, "c"), (NameOID.EMAIL_ADDRESS, "a@b.c")),
    "a serial number": name((CN, "c"), (NameOID.SERIAL_NUMBER, "7"), (NameOID.TITLE, "Dr")),
    "special characters": name((ORG, 'Acme, "A=B" <c>; #+\\/'), (CN, "#x")),
    "blanks at the ends": name((ORG, "  two  "), (CN, " ")),
    "other alphabets": name((ORG, "Ünïcode 日本"), (CN, "żółć")),
    "a null and a line": name((CN, "a\0b\nc\r")),
    "a BMP string": name(x509.NameAttribute(CN, "ab", _type=_ASN1Type.BMPString)),
    "a T61 string": name(x509.NameAttribute(CN, "ab", _type=_ASN1Type.T61String)),
    "an IA5 string": name(x509.NameAttribute(CN, "ab", _type=_ASN1Type.IA5String)),
    "two in one": several_in_one(),
    "empty": name(),
}
RULES = [
    "DEFAULT",
    "",
    "RULE:^CN=(.*?),OU=(.*?),O=(.*?),C=(.*?)$/$1@$2/L,DEFAULT",
    "RULE:^CN=(.*?),.*$/$1/U",
    "RULE:.*/fixed/",
    "RULE:^CN=([^,]+).*$/$1$9$12$0-\\/x/ , DEFAULT",
    "RULE:(CN)=/x/,RULE:.*CN=(.).*/$1$1/L",
    "RULE:.*?CN=(?<who>[^,]+).*/${who}/,DEFAULT",
    "RULE:(.*)/$1x/",
]
BAD_RULES = ["default", "RULE:", "RULE:a/b", "RULE:^CN=.*/x/L,garbage", "RULE:(/x/", "DEFAULT x"]


def cases() -> Iterator[tuple[bytes, str]]:
    for each in NAMES.values():
        for rules in RULES:
            yield each, rules


def our_answer(encoded: bytes, rules: str) -> str:
    text = name_text(encoded)
    try:
        user = PrincipalMapping(rules).user_name(text)
    except (NoRuleError, ConfigError):
        user = "!"
    return f"{text} -> {user}".replace("\n", "\\n").replace("\r", "\\r")


@pytest.mark.java
def test_names_and_users_are_those_of_apache_kafka() -> None:
    asked = [*cases(), *((NAMES["plain"], rules) for rules in BAD_RULES)]
    lines = [f"{base64.b64encode(each).decode()} {rules}" for each, rules in asked]
    answers = java_answers("SslPrincipals.java", lines)
    assert [our_answer(*each) for each in asked] == answers


@pytest.mark.parametrize(
    ("case", "text"),
    [
        ("plain", "CN=client,OU=Dev,O=Acme,C=DE"),
        ("an address by number", "1.2.840.113549.1.9.1=#1605614062 2e63,CN=c".replace(" ", "")),
        ("special characters", 'CN=\\#x,O=Acme\\, \\"A\\=B\\" \\<c\\>\\; \\#\\+\\\\/'),
        ("blanks at the ends", "CN=\\ ,O=\\ \\ two\\ \\ "),
        ("empty", ""),
    ],
)
def test_a_name_is_printed_as_java_prints_it(case: str, text: str) -> None:
    assert name_text(NAMES[case]) == text


@given(st.sampled_from(sorted(NAMES)), st.integers(0, 200), st.binary(max_size=4))
def test_a_damaged_name_is_a_value_error_at_most(case: str, position: int, noise: bytes) -> None:
    name = NAMES[case]
    with suppress(ValueError):
        name_text(name[:position] + noise + name[position + len(noise) :])
    with suppress(ValueError):
        subject_of(name[:position] + noise)


def test_the_first_rule_that_matches_decides() -> None:
    mapping = PrincipalMapping("RULE:^CN=(.*?),OU=dev$/$1/U, RULE:^CN=(.*)$/user-$1/, DEFAULT")
    assert mapping.user_name("CN=ann,OU=dev") == "ANN"
    assert mapping.user_name("CN=ann") == "user-ann"
    assert mapping.user_name("O=x") == "O=x"


def test_a_name_without_a_rule_has_no_user() -> None:
    with pytest.raises(NoRuleError, match="CN=ann"):
        PrincipalMapping("RULE:^O=.*$/x/").user_name("CN=ann")


@pytest.mark.parametrize("rules", [*BAD_RULES, "RULE:^CN=(?<who>.*)$/${nobody}/"])
def test_bad_rules_are_refused(rules: str) -> None:
    with pytest.raises(ConfigError, match=r"ssl\.principal\.mapping\.rules"):
        PrincipalMapping(rules)
